"""Read and write configuration files; the fields of `Config` are the one table of keys.

A file has one ``key value`` pair per line; blank lines and lines that start with ``//`` are skipped. Parser,
dump and help text are derived from the metadata of the fields, so that a new key is one new field.
"""

import difflib
import math
import os
import sys
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, final

from jcdp_core.arguments import expect, plain
from jcdp_core.config_values import FLAG, INTEGERS, LENGTHS, REALS, SECONDS, Kind, count
from jcdp_core.errors import ConfigError

__all__ = ["Config", "key_table", "read_config"]


def _key(default: Any, kind: Kind, meaning: str) -> Any:
    """Declare one key of the configuration file."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of the chain generator and of the solvers.

    ``str(config)`` is a configuration file that gives the same settings when it is read.

    Where a tuple is named, any sequence of numbers is accepted.

    Parameters
    ----------
    length : tuple of int
        Lengths q of the chains; one random stream runs through all of them in this order.
    amount : int
        Chains per length.
    size_range, dag_size_range : tuple of int
        Smallest and largest vector size and number of edges |E| of a link (both ends included).
    tangent_factor_range, adjoint_factor_range : tuple of float
        Factor times |E| is the tangent or adjoint cost of a link in fma.
    density_range : tuple of float
        Read for compatibility; dense chains do not depend on it.
    available_threads : int
        Machines; 0 means unlimited.
    available_memory : int
        Edges that an adjoint step may keep on one machine; 0 means unlimited.
    matrix_free : bool
        Whether eliminations are allowed in addition to products.
    time_to_solve : float
        Time limit of each search (exact, heuristic, rescheduling) in s; 0 means no limit.
    seed : int
        Seed of the 64-bit Mersenne Twister; the default is the default of the C++ standard library.

    Raises
    ------
    ConfigError
        If a value is out of range; the message names the key.

    Examples
    --------
    >>> config = Config(length=(6,), size_range=(5, 500), dag_size_range=(1000, 100000), seed=2457497973)
    >>> config.machines
    1
    >>> print(str(config).splitlines()[2])
    size_range 5 500
    """

    length: tuple[int, ...] = _key((1,), LENGTHS, "lengths of the chains, one stream through all of them")
    amount: int = _key(1, count(1), "random chains per length")
    size_range: tuple[int, int] = _key((1, 1), INTEGERS, "range of the vector sizes n and m")
    dag_size_range: tuple[int, int] = _key((1, 1), INTEGERS, "range of the edges |E| of a link")
    tangent_factor_range: tuple[float, float] = _key((1.0, 1.0), REALS, "range of tangent cost / |E|")
    adjoint_factor_range: tuple[float, float] = _key((1.0, 1.0), REALS, "range of adjoint cost / |E|")
    density_range: tuple[float, float] = _key(
        (0.0, 1.0), REALS, "range of densities (no effect on dense chains)"
    )
    available_threads: int = _key(1, count(0), "machines; 0 = unlimited")
    available_memory: int = _key(0, count(0), "edges that fit on one machine; 0 = unlimited")
    matrix_free: bool = _key(True, FLAG, "1 = eliminations allowed, 0 = products only")
    time_to_solve: float = _key(10.0, SECONDS, "time limit of each search; 0 = none")
    seed: int = _key(5489, count(0), "seed of mt19937_64")

    def __post_init__(self) -> None:
        for key in fields(self):
            try:
                value = _kind(key).accept(plain(getattr(self, key.name)))
            except (TypeError, ValueError) as error:
                raise ConfigError(f"{key.name}: {error}") from None
            object.__setattr__(self, key.name, value)
        if self.amount * len(self.length) > sys.maxsize:
            raise ConfigError(
                f"amount: {self.amount} chains per length are more than can be counted; lower it"
            )
        edges, most = self.dag_size_range
        for name in ("tangent_factor_range", "adjoint_factor_range"):
            if edges * getattr(self, name)[0] < 0.5:
                raise ConfigError(
                    f"{name}: the lower end {getattr(self, name)[0]} times {edges} edges rounds to a cost "
                    "of 0 fma; raise it or the lower end of dag_size_range"
                )
            if not math.isfinite(most * getattr(self, name)[1]):
                raise ConfigError(
                    f"{name}: the upper end {getattr(self, name)[1]} times {most} edges overflows a "
                    "float; lower it or the upper end of dag_size_range"
                )

    def __str__(self) -> str:
        return "".join(f"{key.name} {_kind(key).write(getattr(self, key.name))}\n" for key in fields(self))

    @property
    def machines(self) -> int | None:
        """Number of machines, None if unlimited."""
        return self.available_threads or None

    @property
    def memory_limit(self) -> int | None:
        """Edges per machine, None if unlimited."""
        return self.available_memory or None

    @property
    def time_limit(self) -> float | None:
        """Time limit of each search in s, None if there is none."""
        return self.time_to_solve or None


def _kind(key: Field) -> Kind:
    """Return how the values of *key* are read, checked and written."""
    return key.metadata["kind"]


def key_table() -> str:
    """Return the table of keys that help texts print.

    It has a line for each key: name, syntax, meaning and default.

    Examples
    --------
    >>> print(key_table().splitlines()[1])
      amount                N        random chains per length [1]
    """
    rows = [(key.name, _kind(key), key.metadata["meaning"], key.default) for key in fields(Config)]
    return "\n".join(
        f"  {name:<21} {kind.syntax:<8} {meaning} [{kind.write(default)}]"
        for name, kind, meaning, default in rows
    )


def _nearest(word: str) -> str:
    """Return the advice for the unknown key *word*."""
    if word.startswith("#"):
        return "comments begin with //"
    if set(word) & set("=:,"):
        return "write a space between a key and its value, as in 'length 6'"
    names = [key.name for key in fields(Config)]
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(names)}"


def _read_line(line: str, values: dict[str, Any]) -> None:
    """Add the pair in *line* to *values*."""
    name, _, text = line.partition(" ")
    key = next((key for key in fields(Config) if key.name == name), None)
    if key is None:
        raise ValueError(f"unknown key {name!r}; {_nearest(name)}")
    if name in values:
        raise ValueError(f"{name}: given twice; remove one of the lines")
    kind = _kind(key)
    if not text:
        raise ValueError(f"{name}: the value is missing; write '{name} {kind.syntax}'")
    try:
        values[name] = kind.accept(kind.parse(text))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def read_config(path: str | Path) -> Config:
    r"""Read a configuration file.

    Parameters
    ----------
    path : str or path
        File with one ``key value`` pair per line; missing keys keep their defaults.

    Returns
    -------
    Config
        The settings.

    Raises
    ------
    ConfigError
        If the file is no text or sets no key, or if a line has an unknown key (the nearest valid one is
        named), a key that was given before, or a malformed, reversed or out-of-range value. The message
        starts with ``file:line:``, or with ``file:`` where two lines do not go together.
    ArgumentTypeError
        If the path is something else.
    OSError
        If the file cannot be opened, such as `FileNotFoundError`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "batch.in"
    ...     _ = path.write_text("length 2,3\n// a comment\nsize_range 5 50\n")
    ...     read_config(path).length
    (2, 3)
    """
    expect(path, (str, os.PathLike), "path", "give the name of a configuration file")
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file in UTF-8; give a file of 'key value' lines") from None
    values: dict[str, Any] = {}
    for number, line in enumerate(lines, start=1):
        words = " ".join(line.split())
        if not words or words.startswith("//"):
            continue
        try:
            _read_line(words, values)
        except ValueError as error:
            raise ConfigError(f"{path}:{number}: {error}") from None
    if not values:
        raise ConfigError(f"{path}: sets no key; write lines such as 'length 6' and 'size_range 5 50'")
    try:
        return Config(**values)
    except ConfigError as error:  # two keys that do not go together: no line alone is to blame
        raise ConfigError(f"{path}: {error}") from None
