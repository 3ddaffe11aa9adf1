"""Forked children: they must make locks and threads anew, as those of the parent are of no use there."""

import os
from collections.abc import Callable

__all__ = ["renew_after_fork"]


def renew_after_fork(renew: Callable[[], None]) -> None:
    """Call a function in every child that this process forks; Windows forks none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
