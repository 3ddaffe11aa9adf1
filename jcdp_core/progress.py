"""A progress bar where tqdm is installed and someone is watching, else silence."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, final

__all__ = ["Progress", "progress_bar"]


class Progress(Protocol):
    """Anything that counts steps."""

    def update(self, n: int = 1) -> object:
        """Count *n* more steps."""


@final
class _Silence:
    """Counts nothing."""

    def update(self, n: int = 1) -> None:
        """Do nothing."""


def progress_bar(total: int, done: int, unit: str) -> AbstractContextManager[Progress]:
    """Open a progress bar on standard error, or in a notebook.

    Parameters
    ----------
    total, done : int
        Steps in all, and steps that an earlier run has done.
    unit : str
        What a step is.

    Returns
    -------
    context manager
        Its value has a method ``update(n=1)``. Without tqdm, or if nobody watches (standard error is
        no terminal), it is silent.

    Examples
    --------
    >>> with progress_bar(2, 0, "chain") as bar:
    ...     _ = bar.update(), bar.update()
    """
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415 - optional package
    except ImportError:
        return nullcontext(_Silence())
    bar: AbstractContextManager[Progress] = tqdm(total=total, initial=done, unit=unit, disable=None)
    return bar
