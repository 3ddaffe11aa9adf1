"""Separators and widths of a recorded tape, for users who look for the narrow places of their own program."""

from collections.abc import Sequence

from tapesplit.cuts import certify, separators, width_profile
from tapesplit.cuts.graph import TapeGraph, graph_of
from tapesplit.cuts.separators import Separator
from tapesplit.cuts.width_profile import WidthProfile
from tapesplit.errors import NothingToPlanError
from tapesplit.recording.tape import Tape
from tapesplit.structures.facts import facts_of
from tapesplit.validation import check_count, check_nested, check_tape

__all__ = ["check_separators", "find_separators", "profile_widths"]


def find_separators(tape: Tape, *, max_links: int = 40, machines: int = 1) -> tuple[Separator, ...]:
    """Find nested separators that cut a tape into a Jacobian chain that is cheap to accumulate.

    Parameters
    ----------
    tape
        From `tapesplit.record`.
    max_links
        Maximum number of links of the chain, one more than the number of separators.
    machines
        If greater than 1, also return cuts that only help parallel execution. The exact number is not used.

    Returns
    -------
    tuple of Separator
        From the input to the output; vertices are indices of the tape. Empty if the output does not depend on
        the input or, for one machine, if no chain is much cheaper than one plain sweep. Plans with
        ``cost="fma"`` and plans for several machines have the same separators; with ``cost="runtime"`` the
        search is shorter where cuts save little, and left out where they cannot save a tenth of a call.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If ``tape`` is not a tape, or if a number is not a positive integer.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import record
    >>> tape = record(lambda x: np.sin(np.sum(x)) * np.ones(100), np.ones(100))
    >>> [separator.width for separator in find_separators(tape, max_links=2)]
    [1]
    """
    check_count("max_links", max_links)
    check_count("machines", machines)
    if check_tape(tape).output is None:
        return ()
    return separators.cut_graph(_graph(tape), max_links=max_links, spread=machines > 1)


def check_separators(tape: Tape, nested: Sequence[Separator]) -> None:
    """Check that separators cut a tape into a Jacobian chain, independently of how they were found.

    Parameters
    ----------
    tape
        The tape.
    nested
        Separators from the input to the output.

    Raises
    ------
    ArgumentTypeError
        If ``tape`` is not a tape, or ``nested`` holds something other than separators.
    NothingToPlanError
        If there are separators although the output does not depend on an input.
    SeparatorError
        If a separator cannot be computed from the one before it alone, or the output from the last one; if a
        separator holds a value that the next one does not need; if it repeats the one before it, the inputs
        or the output; or if a width is wrong.

    Notes
    -----
    Takes O(q (n + e)) Python steps for q separators on a tape of n entries.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import record
    >>> tape = record(lambda x: np.sin(np.sum(x)) * np.ones(100), np.ones(100))
    >>> check_separators(tape, find_separators(tape))
    """
    check_tape(tape)
    if cuts := check_nested(nested):
        certify.certify_cuts(_graph(tape), cuts)


def profile_widths(tape: Tape, *, shares: int = 20) -> WidthProfile:
    """Compare the live width along a tape with the minimal width of a cut there, and mark the chosen cuts.

    Parameters
    ----------
    tape
        From `tapesplit.record`.
    shares
        Number of parts of about equal work into which the tape is divided.

    Returns
    -------
    WidthProfile
        Widths in elements, and the separators that `find_separators` chooses. Printing it shows bars; its
        method ``draw`` makes a picture.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If ``tape`` is not a tape, or if the number of shares is not a positive integer.
    NothingToPlanError
        If the output does not depend on an input.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import record
    >>> tape = record(lambda x: np.sin(np.sum(x)) * np.ones(100), np.ones(100))
    >>> profile = profile_widths(tape, shares=3)
    >>> profile.live.tolist(), [separator.width for separator in profile.separators]
    ([1, 1], [1])
    """
    check_count("shares", shares)
    graph = _graph(check_tape(tape))
    return width_profile.width_profile(graph, separators.cut_graph(graph), shares=shares)


def _graph(tape: Tape) -> TapeGraph:
    """Build the graph of a tape."""
    if tape.output is None:
        raise NothingToPlanError(
            f"the value of {tape.name} does not depend on its input, so that nothing can be cut between "
            "them; record a function that uses its argument"
        )
    return graph_of(tape, facts_of(tape))
