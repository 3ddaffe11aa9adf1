"""A progress bar where tqdm is installed and someone is watching, else silence."""

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

__all__ = ["progress_bar"]


def progress_bar(total: int, done: int) -> AbstractContextManager[Any]:
    """Open a progress bar for chains on standard error, or in a notebook.

    Parameters
    ----------
    total, done : int
        Chains in all, and chains that an earlier run has done.

    Returns
    -------
    context manager
        Its value has a method ``update(n=1)``. Without tqdm, or if nobody watches (standard error is
        no terminal), it is silent.

    Examples
    --------
    >>> with progress_bar(2, 0) as bar:
    ...     _ = bar.update(), bar.update()
    """
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415 - optional package
    except ImportError:
        return nullcontext(SimpleNamespace(update=lambda _n=1: None))
    return tqdm(total=total, initial=done, unit="chain", disable=None)
