"""Batch runs: right rows in the right order, whatever interrupts them."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from jcdp_strategies import PUBLISHED, published_chains

from jcdp_core import batch
from jcdp_core.batch import result_row, run_batch
from jcdp_core.config import Config
from jcdp_core.errors import ArgumentTypeError, ConfigError, ResultsError, SolverError
from jcdp_core.generator import ChainGenerator
from jcdp_core.results import columns, read_results

DATA = Path(__file__).parent / "data"
RANGES = {"size_range": (5, 50), "dag_size_range": (1000, 10000), "seed": 4711}
CONFIG = Config(length=(2, 3, 4), amount=5, **RANGES)


@pytest.fixture(scope="module")
def reference():
    """Return the lines that a batch run must write, by length."""
    chains = itertools.groupby(ChainGenerator(CONFIG), key=len)
    return {
        length: [",".join(columns(length)), *(result_row(chain, CONFIG) for chain in group)]
        for length, group in chains
    }


def _lines(paths):
    return {int(path.stem[-1]): path.read_text(encoding="utf-8").splitlines() for path in paths}


def test_rows_are_those_of_the_publication():
    published = (DATA / "results_length_3.head150.csv").read_text(encoding="utf-8").splitlines()
    assert published[0] == ",".join(columns(3))
    names = columns(3)
    # BnB_List is another method here, and the published DP_BnB keeps the old start times.
    common = [index for index, name in enumerate(names) if name.split("/")[0] in {"BnB_BnB", "DP"}]
    for chain, line in zip(published_chains()[3][:150], published[1:], strict=True):
        ours, theirs = result_row(chain, PUBLISHED).split(","), line.split(",")
        assert [ours[index] for index in common] == [theirs[index] for index in common]


def test_files_are_read_back_and_solvers_are_ordered(tmp_path, reference):
    paths = run_batch(CONFIG, f"{tmp_path}/r")
    assert _lines(paths) == reference
    for path, length in zip(paths, CONFIG.length, strict=True):
        results = read_results(path)
        assert (results.length, len(results)) == (length, CONFIG.amount)
        for machines in range(1, length + 1):
            columns_ = [results.makespans[name, machines] for name in ("BnB_BnB", "BnB_List", "DP")]
            assert all(best <= good <= found for best, good, found in zip(*columns_, strict=True))
            rescheduled = results.makespans["DP_BnB", machines]
            assert all(
                best <= new <= old
                for best, new, old in zip(columns_[0], rescheduled, columns_[2], strict=True)
            )


@pytest.mark.parametrize("kept", [0, 7, 0.4, 0.8, 1.0])
def test_resumes_after_any_cut(tmp_path, reference, kept):
    paths = run_batch(CONFIG, f"{tmp_path}/r")
    # A killed run has complete files first, then one that ends anywhere, then none.
    text = paths[1].read_text(encoding="utf-8")
    paths[1].write_text(text[: int(kept * len(text)) if isinstance(kept, float) else kept], encoding="utf-8")
    paths[2].unlink()
    run_batch(CONFIG, f"{tmp_path}/r")
    assert _lines(paths) == reference


def test_a_finished_run_solves_nothing_again(tmp_path, reference, monkeypatch):
    paths = run_batch(CONFIG, f"{tmp_path}/r")
    monkeypatch.setattr(batch, "result_row", lambda *_, **__: pytest.fail("solved again"))
    assert run_batch(CONFIG, f"{tmp_path}/r") == paths
    assert _lines(paths) == reference


def test_an_interrupt_keeps_the_rows_so_far(tmp_path, reference, monkeypatch):
    solved = []

    def row(chain, config):
        if len(solved) == 7:
            raise KeyboardInterrupt
        solved.append(chain)
        return result_row(chain, config)

    monkeypatch.setattr(batch, "result_row", row)
    with pytest.raises(KeyboardInterrupt):
        run_batch(CONFIG, f"{tmp_path}/r")
    files = {length: tmp_path / f"r{length}.csv" for length in CONFIG.length}
    lines = {length: path.read_text(encoding="utf-8").splitlines() for length, path in files.items()}
    assert lines == {2: reference[2], 3: reference[3][:3], 4: reference[4][:1]}

    monkeypatch.setattr(
        batch, "result_row", lambda chain, config: solved.append(chain) or result_row(chain, config)
    )
    assert _lines(run_batch(CONFIG, f"{tmp_path}/r")) == reference
    assert solved == list(ChainGenerator(CONFIG))  # none lost, none repeated


def test_processes_keep_the_order(tmp_path, reference):
    assert _lines(run_batch(CONFIG, f"{tmp_path}/r", jobs=2)) == reference


def test_a_dead_worker_is_reported():
    message = "a worker process died .* outside of `if __name__ == '__main__':`"
    with pytest.raises(SolverError, match=message), batch._ordered_map(2) as ordered_map:
        list(ordered_map(os._exit, [3]))


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
@pytest.mark.parametrize(
    ("sent", "jobs"), [(signal.SIGTERM, 1), (signal.SIGTERM, 2), pytest.param(9, 2, id="kill")]
)
def test_a_signal_ends_the_command_and_its_workers(tmp_path, sent, jobs):
    config = Config(length=(3,), amount=1_000_000, **RANGES)
    (tmp_path / "batch.in").write_text(str(config), encoding="utf-8")
    code = "import sys; from jcdp_core.cli import main_batch; sys.exit(main_batch())"
    command = [sys.executable, "-c", code, "batch.in", "-o", "r", "--jobs", str(jobs)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own command
        file = tmp_path / "r3.csv"
        while process.poll() is None and not (file.exists() and file.read_bytes().count(b"\n") > 3):
            time.sleep(0.01)
        process.send_signal(sent)
        # The workers inherit standard error: its end means that all of them have ended, too.
        _, errors = process.communicate(timeout=60)
    if sent == signal.SIGTERM:
        assert process.returncode == 130
        message = "jcdp-batch: interrupted; the rows so far are kept, the same command goes on after them"
        assert errors.decode().strip().startswith(message)  # a note on the chain being solved may follow
    assert b"Traceback" not in errors
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[1:4] == [result_row(chain, config) for chain in itertools.islice(ChainGenerator(config), 3)]


def test_other_settings_are_refused(tmp_path):
    run_batch(CONFIG, f"{tmp_path}/r")
    with pytest.raises(
        ResultsError, match=r"rsettings\.in: .* other settings \(there: seed 4711; here: seed 1\)"
    ):
        run_batch(Config(length=(2, 3, 4), amount=5, **RANGES | {"seed": 1}), f"{tmp_path}/r")
    with pytest.raises(ResultsError, match=r"\(there: // .* libstdc\+\+; here: // .* libc\+\+\)"):
        run_batch(CONFIG, f"{tmp_path}/r", flavour="libc++")


def test_machines_of_the_configuration_do_not_matter(tmp_path):
    run_batch(CONFIG, f"{tmp_path}/r")
    run_batch(replace(CONFIG, available_threads=5), f"{tmp_path}/r")
    assert "available_threads 1" in (tmp_path / "rsettings.in").read_text("utf-8")  # as it was given first


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX locks")
def test_two_runs_at_a_time_are_refused(tmp_path, reference, monkeypatch):
    def row(chain, config):
        with pytest.raises(
            ResultsError, match=r"rsettings\.in: another run is writing the files of this prefix"
        ):
            run_batch(CONFIG, f"{tmp_path}/r")
        return result_row(chain, config)

    monkeypatch.setattr(batch, "result_row", row)
    assert _lines(run_batch(CONFIG, f"{tmp_path}/r")) == reference
    assert _lines(run_batch(CONFIG, f"{tmp_path}/r")) == reference  # the first run has let go


def test_file_systems_without_locks_will_do(tmp_path, reference, monkeypatch):
    class NoLocks:
        LOCK_EX = LOCK_NB = 0

        def flock(self, file, operation):
            raise OSError(errno.ENOLCK, "No locks available")

    for fcntl in (NoLocks(), None):
        monkeypatch.setattr(batch, "fcntl", fcntl)
        assert _lines(run_batch(CONFIG, f"{tmp_path}/r")) == reference


def test_foreign_and_damaged_files_are_refused(tmp_path):
    (tmp_path / "r3.csv").write_text("precious\n", encoding="utf-8")
    with pytest.raises(
        ResultsError, match=r"r3\.csv: the file exists, but nothing in rsettings\.in tells its settings"
    ):
        run_batch(CONFIG, f"{tmp_path}/r")
    assert (tmp_path / "r3.csv").read_text(encoding="utf-8") == "precious\n"

    paths = run_batch(CONFIG, f"{tmp_path}/s")
    lines = paths[0].read_text(encoding="utf-8").splitlines()
    paths[0].write_text("\n".join([lines[0], lines[1], "true,1", *lines[3:], ""]), encoding="utf-8")
    with pytest.raises(
        ResultsError, match=r"s2\.csv:3: 2 cells instead of 10; the row is damaged: remove it"
    ):
        run_batch(CONFIG, f"{tmp_path}/s")
    paths[0].write_text("\n".join([*lines[:2], "a" + "," * 9, *lines[3:], ""]), encoding="utf-8")
    with pytest.raises(
        ResultsError, match=r"s2\.csv:3: cell 1 is 'a', which is no result; the row is damaged"
    ):
        run_batch(CONFIG, f"{tmp_path}/s")
    refuted = "true,10,10,10,10,true,10,9,8,8"
    paths[0].write_text("\n".join([*lines[:2], refuted, *lines[3:], ""]), encoding="utf-8")
    with pytest.raises(
        ResultsError, match=r"s2\.csv:3: cell 7 is 10, a proved optimum, but 8 was found; the row is damaged"
    ):
        read_results(paths[0])
    paths[0].write_text("\n".join([lines[0], *2 * lines[1:], ""]), encoding="utf-8")
    with pytest.raises(ResultsError, match=r"s2\.csv: 10 rows for 5 chains; did two runs write them\?"):
        run_batch(CONFIG, f"{tmp_path}/s")
    paths[0].write_text("q,m\n", encoding="utf-8")
    with pytest.raises(ResultsError, match=r"s2\.csv:1: the header is not that of chains of length 2"):
        run_batch(CONFIG, f"{tmp_path}/s")


@pytest.mark.parametrize(
    ("rows", "chain"), [((2, 3, 4), 1), ((1, 2, 4, 5), 3), ((1, 1, 2), 2)], ids=["first", "middle", "doubled"]
)
def test_rows_that_are_not_those_of_their_chains_are_refused(tmp_path, reference, rows, chain):
    """Rows have no numbers: one that was removed or doubled shows by the last row."""
    paths = run_batch(CONFIG, f"{tmp_path}/r")
    text = "\n".join([reference[3][row] for row in (0, *rows)] + [""])
    paths[1].write_text(text, encoding="utf-8")
    message = rf"r3\.csv:{chain + 1}: DP/1 is \d+, and \d+ for chain {chain}; .* remove it and all rows after"
    with pytest.raises(ResultsError, match=message):
        run_batch(CONFIG, f"{tmp_path}/r")
    assert paths[1].read_text(encoding="utf-8") == text

    paths[1].write_text("\n".join([*text.split("\n")[:chain], ""]), encoding="utf-8")  # as it says
    assert _lines(run_batch(CONFIG, f"{tmp_path}/r")) == reference


def test_bad_arguments(tmp_path):
    with pytest.raises(ConfigError, match="length: a length is given twice"):
        run_batch(Config(length=(2, 2)), f"{tmp_path}/r")
    with pytest.raises(SolverError, match="jobs is 0"):
        run_batch(Config(), f"{tmp_path}/r", jobs=0)
    assert not list(tmp_path.iterdir())


def test_line_ends_of_other_systems_are_kept(tmp_path, reference):
    paths = run_batch(CONFIG, f"{tmp_path}/r")
    lines = paths[0].read_bytes().split(b"\n")
    paths[0].write_bytes(b"\r\n".join(lines[:4]) + b"\r\ntrue,1")
    settings = tmp_path / "rsettings.in"
    settings.write_bytes(settings.read_bytes().replace(b"\n", b"\r\n"))
    run_batch(CONFIG, f"{tmp_path}/r")
    assert paths[0].read_bytes() == b"\r\n".join(lines[:4]) + b"\r\n" + b"\n".join(lines[4:])
    assert _lines(paths) == reference


@pytest.mark.parametrize("name", ["r2.csv", "rsettings.in"])
def test_bytes_that_are_no_text_name_the_file(tmp_path, name):
    run_batch(CONFIG, f"{tmp_path}/r")
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b"\xff")
    with pytest.raises(ResultsError, match=rf"{name}: not a text file in UTF-8; choose another prefix"):
        run_batch(CONFIG, f"{tmp_path}/r")


def test_wrong_kinds_of_arguments_are_named(tmp_path):
    with pytest.raises(ArgumentTypeError, match=r"config is the str 'x\.in', where a Config is expected"):
        run_batch("x.in", f"{tmp_path}/r")
    with pytest.raises(SolverError, match="jobs is '2'; give the number of worker processes"):
        run_batch(Config(), f"{tmp_path}/r", jobs="2")
    assert not list(tmp_path.iterdir())
