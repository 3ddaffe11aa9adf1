"""Solve all random chains of a configuration and keep the rows as they come.

One CSV file per chain length, one row per chain, in the order of the random stream. The chains themselves are
not stored: they follow from the settings, so that the number of complete rows in a file says where to go on.
Rows have no number either: if one is missing, the last one does not belong to its chain, which is checked.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from jcdp_core.arguments import expect, positive_integer
from jcdp_core.chain import JacobianChain
from jcdp_core.comparison import compare
from jcdp_core.config import Config
from jcdp_core.errors import ConfigError, ResultsError, SolverError
from jcdp_core.generator import ChainGenerator, Flavour
from jcdp_core.progress import progress_bar
from jcdp_core.results import SOLVER_COLUMNS, columns, read_row
from jcdp_core.solvers import solve

__all__ = ["result_row", "run_batch"]

_WINDOW: Final = 32  # rows per process that may wait for an earlier, harder one


def result_row(chain: JacobianChain, config: Config) -> str:
    """Solve one chain for every machine count and return its row of the results file.

    The machine counts are 1, …, q for a chain of length q, whatever ``available_threads`` says. The row is
    comma-separated cells in the order of `jcdp_core.results.columns`; makespans are in fma.

    Examples
    --------
    >>> result_row(JacobianChain.from_sizes([3, 2], [7]), Config())
    'true,14,14,14,14'
    """
    cells: list[str] = []
    for machines in range(1, len(chain) + 1):
        solutions = compare(chain, config, machines)
        cells.append("true" if solutions["BnB_BnB"].optimal else "false")
        cells += [str(solutions[name].makespan) for name in SOLVER_COLUMNS]
    return ",".join(cells)


def run_batch(
    config: Config, prefix: str = "results_length_", *, flavour: Flavour = "libstdc++", jobs: int = 1
) -> list[Path]:
    """Solve all chains of a configuration, going on where an earlier run stopped.

    Parameters
    ----------
    config : Config
        Settings of generator and solvers; the machine counts are 1, …, q whatever ``available_threads`` says.
    prefix : str, optional
        Start of all file names: ``{prefix}{q}.csv`` for the rows of length q, ``{prefix}settings.in`` for the
        settings that they belong to.
    flavour : {"libstdc++", "libc++"}, optional
        Flavor of the random stream.
    jobs : int, optional
        Worker processes; 1 solves in this process. Workers import the script that calls: with more than one,
        keep the call under ``if __name__ == "__main__":``.

    Returns
    -------
    list of Path
        The CSV files, one per length.

    Raises
    ------
    ResultsError
        If files of that prefix belong to other settings, are damaged, or another run is writing them (where
        the system has POSIX locks).
    ConfigError
        If a length is given twice: its rows would go to one file.
    ArgumentTypeError
        If *config* is not a `Config`.
    SolverError
        If *jobs* is not positive or a worker process dies.
    OSError
        If a file cannot be written.

    Notes
    -----
    Of the rows that are there the last one of each file is compared with its chain, by ``DP/1``. So it is
    noticed that a row before it was removed or added, but not that makespans were changed.

    A row is written as soon as it and all rows before it are complete, and flushed at once. An exception,
    Ctrl-C included, ends the workers and passes through; the rows so far are kept, and the same call goes on
    after them.
    """
    expect(config, Config, "config", "build one, or read one with read_config(path)")
    if not positive_integer(jobs):
        raise SolverError(f"jobs is {jobs!r}; give the number of worker processes, at least 1")
    if len(set(config.length)) < len(config.length):
        raise ConfigError("length: a length is given twice; its rows would go to one file")
    generator = ChainGenerator(config, flavour)
    paths = [Path(f"{prefix}{length}.csv") for length in config.length]
    settings = Path(f"{prefix}settings.in")
    with _locked(settings):
        _check_settings(settings, paths, config, flavour)
        lengths = zip(paths, config.length, strict=True)
        complete = [_complete_rows(path, length, config.amount) for path, length in lengths]
        _solve_rows(generator, paths, complete, jobs)
    return paths


def _solve_rows(generator: ChainGenerator, paths: list[Path], complete: list[list[int]], jobs: int) -> None:
    """Append the rows of all chains that have none yet."""
    row_of = partial(result_row, config=generator.config)
    groups = groupby(generator, key=len)
    count = sum(map(len, complete))
    with _ordered_map(jobs) as ordered_map, progress_bar(len(generator), count) as progress:
        for path, makespans, (length, chains) in zip(paths, complete, groups, strict=True):
            if makespans:
                last = next(islice(chains, len(makespans) - 1, None))
                if _one_machine(last, generator.config) != makespans[-1]:
                    raise _shifted(generator, path, length, makespans)
            with path.open("a", encoding="utf-8", newline="") as file:
                for row in ordered_map(row_of, chains):
                    file.write(row + "\n")
                    file.flush()
                    progress.update()


def _one_machine(chain: JacobianChain, config: Config) -> int:
    """Return the makespan that the column ``DP/1`` must have for a chain (fma)."""
    return solve(chain, matrix_free=config.matrix_free, memory_limit=config.memory_limit).makespan


def _shifted(generator: ChainGenerator, path: Path, length: int, makespans: list[int]) -> ResultsError:
    """Return the error for a file whose last row is not that of its chain; it names the first such row."""
    chains = (chain for chain in generator if len(chain) == length)
    rows = enumerate(zip(chains, makespans, strict=False), start=2)
    pairs = ((line, _one_machine(chain, generator.config), makespan) for line, (chain, makespan) in rows)
    line, wanted, found = next(pair for pair in pairs if pair[1] != pair[2])
    return ResultsError(
        f"{path}:{line}: DP/1 is {found}, and {wanted} for chain {line - 1}; this row or one before it was "
        "removed or added: remove it and all rows after it"
    )


@contextmanager
def _locked(settings: Path) -> Iterator[None]:
    """Lock the file of settings until we are done or dead: two runs would write each row twice."""
    with settings.open("a", encoding="utf-8") as file:
        try:
            if fcntl:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(
                f"{settings}: another run is writing the files of this prefix; wait for its end, or choose "
                "another prefix"
            ) from None
        except OSError:  # some file systems have no locks
            pass
        yield


def _check_settings(settings: Path, results: list[Path], config: Config, flavour: str) -> None:
    """Write the settings next to the results, or check that they are those of the earlier run."""
    text = f"// written by jcdp-batch --flavour {flavour}\n{config}"
    earlier = _read(settings).splitlines()
    if earlier:
        # Rows have all numbers of machines, whatever the configuration says.
        there, here = (
            {line for line in lines if not line.startswith("available_threads")}
            for lines in (earlier, text.splitlines())
        )
        if there != here:
            old, new = ("; ".join(sorted(lines)) for lines in (there - here, here - there))
            raise ResultsError(
                f"{settings}: the files of this prefix belong to other settings (there: {old}; here: {new}); "
                "choose another prefix, or remove the files"
            )
        return
    for path in results:
        if path.exists():
            raise ResultsError(
                f"{path}: the file exists, but nothing in {settings.name} tells its settings; choose another "
                "prefix, or remove the file"
            )
    settings.write_text(text, encoding="utf-8")


def _read(path: Path) -> str:
    """Return the text of a file with its line ends as they are."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise ResultsError(
            f"{path}: not a text file in UTF-8; choose another prefix, or remove the file"
        ) from None


def _complete_rows(path: Path, length: int, amount: int) -> list[int]:
    """Return DP/1 of the complete rows in a file; cut off an incomplete last one; start a new file."""
    header = columns(length)
    text = _read(path) if path.exists() else ""
    complete = text[: text.rfind("\n") + 1]
    lines = complete.splitlines()
    if not lines:
        path.write_text(",".join(header) + "\n", encoding="utf-8", newline="")
        return []
    if lines[0].split(",") != header:
        raise ResultsError(f"{path}:1: the header is not that of chains of length {length}; remove the file")
    if len(lines) - 1 > amount:
        raise ResultsError(
            f"{path}: {len(lines) - 1} rows for {amount} chains; did two runs write them? Remove the file"
        )
    rows = enumerate(lines[1:], start=2)
    cells = [read_row(line.split(","), len(header), f"{path}:{number}") for number, line in rows]
    if len(complete) < len(text):
        os.truncate(path, len(complete.encode()))
    place = header.index("DP/1")
    return [row[place] for row in cells]


_OrderedMap = Callable[[Callable[[JacobianChain], str], Iterable[JacobianChain]], Iterator[str]]


@contextmanager
def _ordered_map(jobs: int) -> Iterator[_OrderedMap]:
    """Provide a lazy ordered map over *jobs* processes; an exception ends the processes at once."""
    if jobs == 1:
        yield map
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=_depend_on_the_parent)
    try:
        yield partial(_windowed_map, executor, jobs * _WINDOW)
    except BaseException as error:
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        if isinstance(error, BrokenProcessPool):
            raise SolverError(
                "a worker process died (out of memory, or a script that calls run_batch outside of "
                "`if __name__ == '__main__':`?); the rows so far are kept"
            ) from error
        raise
    finally:
        executor.shutdown()


def _windowed_map(
    executor: ProcessPoolExecutor,
    window: int,
    function: Callable[[JacobianChain], str],
    chains: Iterable[JacobianChain],
) -> Iterator[str]:
    """Yield the results in order, with at most *window* of them under way."""
    pending: deque[Future[str]] = deque()
    for chain in chains:
        pending.append(executor.submit(function, chain))
        if len(pending) == window:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _depend_on_the_parent() -> None:
    """Ignore Ctrl-C in a worker, which the parent process ends itself; end when the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """Wait for the end of the parent process; nobody takes results any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
