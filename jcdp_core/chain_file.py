"""Read chains of one's own from a file: JSON with the numbers of `JacobianChain.from_sizes`."""

import json
import os
from pathlib import Path
from typing import Any, Final

from jcdp_core.arguments import expect
from jcdp_core.chain import JacobianChain
from jcdp_core.errors import ConfigError, JcdpError

__all__ = ["read_chains"]

_NEEDED: Final = ("sizes", "edges")
_OPTIONAL: Final = ("tangent_costs", "adjoint_costs", "tangent", "adjoint")
_REPORTED: Final = frozenset({"length", "tangent_cost", "adjoint_cost", "solutions"})
"""Further members that ``jcdp --json`` writes; they are ignored, as they follow from the chain."""


def read_chains(path: str | Path) -> tuple[JacobianChain, ...]:
    """Read chains from a JSON file.

    Parameters
    ----------
    path : str or path
        File with an object for a chain, whose members are parameters of `JacobianChain.from_sizes`; with a
        list of such objects; or with what ``jcdp --json`` has printed.

    Returns
    -------
    tuple of JacobianChain
        One chain or more.

    Raises
    ------
    ConfigError
        If the file is no JSON, has no chain, or something else in its place. The message starts with the name
        of the file.
    ArgumentTypeError
        If the path is something else.
    OSError
        If the file cannot be opened, such as `FileNotFoundError`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "chain.json"
    ...     _ = path.write_text('{"sizes": [3, 2, 5], "edges": [7, 11]}')
    ...     read_chains(path)
    (JacobianChain.from_sizes([3, 2, 5], [7, 11]),)
    """
    expect(path, (str, os.PathLike), "path", "give the name of a JSON file")
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # no text, no JSON, or lists in lists in lists
        raise ConfigError(f"{path}: this is not JSON ({error}); {_ADVICE}") from None
    if isinstance(data, dict) and "chains" in data:
        data = data["chains"]
    given = data if isinstance(data, list) else [data]
    if not given:
        raise ConfigError(f"{path}: there is no chain in it; {_ADVICE}")
    return tuple(_chain(item, f"{path}: chain {number}") for number, item in enumerate(given, start=1))


def _chain(data: Any, place: str) -> JacobianChain:
    """Make one chain of JSON data; errors begin with its place."""
    if not isinstance(data, dict):
        raise ConfigError(f"{place} is {data!r:.40}; {_ADVICE}")
    for name in _NEEDED:
        if name not in data:
            raise ConfigError(f"{place} has no {name!r}; {_ADVICE}")
    unknown = data.keys() - {*_NEEDED, *_OPTIONAL, *_REPORTED}
    if unknown:
        names = ", ".join((*_NEEDED, *_OPTIONAL))
        raise ConfigError(f"{place} has an unknown member {min(unknown)!r}; there are {names}")
    try:
        return JacobianChain.from_sizes(
            **{name: data[name] for name in (*_NEEDED, *_OPTIONAL) if name in data}
        )
    except JcdpError as error:
        raise ConfigError(f"{place}: {error}") from None


_ADVICE: Final = 'write {"sizes": [n_1, m_1, ..., m_q], "edges": [...]}, or a list of such objects'
