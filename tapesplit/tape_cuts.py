"""Separators and widths of a recorded tape, for users who look for the narrow places of their own program."""

from collections.abc import Sequence

from tapesplit.cuts import certify, separators, width_profile
from tapesplit.cuts.graph import TapeGraph, graph_of
from tapesplit.cuts.separators import Separator
from tapesplit.cuts.width_profile import WidthProfile
from tapesplit.errors import NothingToPlanError
from tapesplit.recording.tape import Tape
from tapesplit.structures.facts import facts_of
from tapesplit.structures.structure import structure_of
from tapesplit.validation import check_count, check_nested, check_tape

__all__ = ["check_separators", "find_separators", "profile_widths"]


def find_separators(tape: Tape, *, max_links: int = 40, machines: int = 1) -> tuple[Separator, ...]:
    """Find nested separators that cut a tape into a Jacobian chain which is cheap to accumulate.

    Parameters
    ----------
    tape
        From `tapesplit.record`.
    max_links
        Most links of the chain, that is one more than separators.
    machines
        1, or more: any larger number adds cuts that gain nothing on one machine, spread over the tape, which
        give several something to do. It makes no difference how many these are.

    Returns
    -------
    tuple of Separator
        From the input to the output, the best of all kinds of cuts. A plan has the same ones if it counts
        fma, or if several machines work; one that counts seconds looks less far where cuts save little, and
        has none where they cannot save a tenth of a call. Empty if the output does not depend on the input,
        or, for one machine, if no chain is much cheaper than one plain sweep. Vertices are indices of the
        tape.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If this is no tape, or if a number is not a positive integer.

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
    """Check that separators cut a tape into a Jacobian chain, independently of whoever found them.

    Parameters
    ----------
    tape
        The tape.
    nested
        Separators from the input to the output.

    Raises
    ------
    ArgumentTypeError
        If this is no tape, or if these are no separators.
    NothingToPlanError
        If there are some, though the output does not depend on an input.
    SeparatorError
        If one is not computed from the one before it alone, or the output not from the last one, if one holds
        a value that the next one is computed without, if one repeats the one before it, the inputs or the
        output, or if a width is wrong.

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
        Number of places along the tape.

    Returns
    -------
    WidthProfile
        Elements, and the separators that `find_separators` chooses. Printing it draws bars, its method
        ``draw`` makes a picture.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If this is no tape, or if the number of places is not a positive integer.
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
    return graph_of(tape, facts_of(tape, structure_of(tape)))
