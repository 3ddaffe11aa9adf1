"""Separators of a recorded tape, for users who look for the narrow places of their own program."""

from tapesplit import separators
from tapesplit.facts import facts_of, graph_of
from tapesplit.separators import Separator
from tapesplit.structure import structure_of
from tapesplit.tape import Tape

__all__ = ["find_separators"]


def find_separators(tape: Tape, *, max_links: int = 40) -> tuple[Separator, ...]:
    """Find nested separators that cut a tape into a Jacobian chain which is cheap to accumulate.

    Parameters
    ----------
    tape
        From `tapesplit.record`.
    max_links
        Most links of the chain, that is one more than separators.

    Returns
    -------
    tuple of Separator
        From the input to the output; empty if no chain is much cheaper than one plain sweep, or if the output
        does not depend on the input. Vertices are indices of the tape.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import record
    >>> tape = record(lambda x: np.sin(np.sum(x)) * np.ones(100), np.ones(100))
    >>> [separator.width for separator in find_separators(tape, max_links=2)]
    [1]
    """
    if tape.output is None:
        return ()
    return separators.find_separators(graph_of(tape, facts_of(tape, structure_of(tape))), max_links=max_links)
