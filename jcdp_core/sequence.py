"""An elimination sequence: the steps that make the chain's Jacobian, their costs, and who needs whom."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jcdp_core.arguments import expect, positive_integer
from jcdp_core.chain import CHAIN_ADVICE, JacobianChain
from jcdp_core.errors import InvalidSequenceError
from jcdp_core.operation import Mode, Operation
from jcdp_core.tables import Tabular

__all__ = ["EliminationSequence", "operation_cost"]

_STEP_ADVICE: Final = "give an Operation, or text like 'ELI MUL (1 4 6)' to from_operations"

_HEAD: Final = ("step", "operation", "fma", "needs")


def operation_cost(chain: JacobianChain, operation: Operation) -> int:
    """Count the fused multiply-adds of one step.

    They are n_i · Σ tangent_cost or m_j · Σ adjoint_cost over the links that the step sweeps, or m_j · m_k ·
    n_i for a product. Raises `InvalidSequenceError` if the step reaches beyond the end of the chain.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2.

    Examples
    --------
    >>> chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    >>> operation_cost(chain, Operation.parse("ELI MUL (0 1 2)"))
    30
    """
    if operation.j > len(chain):
        raise InvalidSequenceError(f"{operation} reaches beyond the chain's last position {len(chain)}")
    links = chain.links
    n, m = links[operation.i].n, links[operation.j - 1].m
    if operation.mode is Mode.TANGENT:
        return n * sum(links[link].tangent_cost for link in operation.swept)
    if operation.mode is Mode.ADJOINT:
        return m * sum(links[link].adjoint_cost for link in operation.swept)
    (middle, _), _ = operation.operands
    return m * links[middle].n * n


@dataclass(frozen=True)  # slots would make a TypeError of assigning to a property
class EliminationSequence(Tabular):
    """Hold the steps in an order in which each comes after those that it needs.

    Each intermediate Jacobian is used exactly once, so the precedence relation is an in-tree with the last
    step as its root. The class does not check this; `check_sequence` does.

    Parameters
    ----------
    operations : tuple of Operation
        The steps.
    costs : tuple of int
        Cost of each step (fma).

    References
    ----------
    Märtens & Naumann 2025, Sec. 2 and 3.

    Examples
    --------
    >>> chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    >>> steps = ["ACC TAN (0 1)", "ELI TAN (0 1 2)"]
    >>> sequence = EliminationSequence.from_operations(chain, steps)
    >>> sequence.costs, sequence.total, sequence.successors
    ((21, 33), 54, (1, None))
    >>> print(sequence)
    Elimination sequence, 54 fma: (Ḟ2 F1)
    step  operation        fma  needs
       1  ACC TAN (0 1)     21
       2  ELI TAN (0 1 2)   33  1
    """

    operations: tuple[Operation, ...]
    costs: tuple[int, ...]

    def __post_init__(self) -> None:
        """Freeze the two lists and check that they fit."""
        for name, advice in (("operations", _STEP_ADVICE), ("costs", "give a list of int ≥ 1")):
            expect(getattr(self, name), Iterable, name, advice)
        object.__setattr__(self, "operations", tuple(self.operations))
        object.__setattr__(self, "costs", tuple(self.costs))
        if not self.operations or len(self.operations) != len(self.costs):
            raise InvalidSequenceError(
                f"{len(self.operations)} steps and {len(self.costs)} costs given; give one cost per step, "
                "and at least one step"
            )
        for number, step in enumerate(self.operations, start=1):
            expect(step, Operation, f"step {number}", _STEP_ADVICE)
        costs = tuple(map(positive_integer, self.costs))
        if not all(costs):
            index = costs.index(0)
            raise InvalidSequenceError(
                f"step {index + 1}, {self.operations[index]}, has {self.costs[index]!r} as its cost; give an "
                "int ≥ 1"
            )
        object.__setattr__(self, "costs", costs)

    @classmethod
    def from_operations(
        cls, chain: JacobianChain, operations: Iterable[Operation | str]
    ) -> "EliminationSequence":
        """Build a sequence and compute the costs of its steps on a chain.

        Parameters
        ----------
        chain : JacobianChain
            The chain.
        operations : iterable of Operation or str
            The steps, each after those that it needs; text is in the paper's notation. A single text is a
            single step, and another sequence stands for its steps.

        Returns
        -------
        EliminationSequence
            The steps with their costs.

        Raises
        ------
        InvalidSequenceError
            If a step reaches beyond the chain, or there is none.
        InvalidOperationError
            If a text is not in the notation.
        ArgumentTypeError
            If the chain or a step is something else.

        Examples
        --------
        >>> chain = JacobianChain.from_sizes([3, 2], [7])
        >>> EliminationSequence.from_operations(chain, ["ACC ADJ (0 1)"]).total
        14
        """
        expect(chain, JacobianChain, "chain", CHAIN_ADVICE)
        expect(operations, Iterable, "operations", "give a list of steps")
        steps = []
        given_steps = [operations] if isinstance(operations, str) else operations
        for number, given in enumerate(given_steps, start=1):
            step = Operation.parse(given) if isinstance(given, str) else given
            expect(step, Operation, f"step {number}", _STEP_ADVICE)
            steps.append(step)
        return cls(tuple(steps), tuple(operation_cost(chain, step) for step in steps))

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.operations)

    def __iter__(self) -> Iterator[Operation]:
        """Iterate over the steps."""
        return iter(self.operations)

    @property
    def total(self) -> int:
        """Work of all steps (fma): the makespan on one machine."""
        return sum(self.costs)

    @property
    def successors(self) -> tuple[int | None, ...]:
        """Index of the step that uses each step's result; None for the last one and for unused results."""
        successors: list[int | None] = [None] * len(self.operations)
        for index, needed in enumerate(self.predecessors):
            for producer in needed:
                successors[producer] = index
        return tuple(successors)

    @property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the steps whose results each step uses."""
        made: dict[tuple[int, int], int] = {}
        predecessors = []
        for index, operation in enumerate(self.operations):
            predecessors.append(tuple(made[operand] for operand in operation.operands if operand in made))
            made[operation.i, operation.j] = index
        return tuple(predecessors)

    def bracketing(self) -> str:
        """Write the sequence as a bracketed product, the last link first.

        A plain `F6` is a link whose Jacobian is accumulated, `Ḟ6` a link whose tangent model is swept, `F̄6`
        one whose adjoint model is swept.

        Returns
        -------
        str
            For example `((Ḟ6 F5) F4)`.

        Examples
        --------
        >>> chain = JacobianChain.from_sizes([3, 2, 5, 4], [7, 11, 13])
        >>> steps = ["ACC TAN (1 2)", "ELI TAN (1 2 3)", "ELI ADJ (0 1 3)"]
        >>> print(EliminationSequence.from_operations(chain, map(Operation.parse, steps)).bracketing())
        ((Ḟ3 F2) F̄1)
        """
        text: dict[tuple[int, int], str] = {}
        for operation in self.operations:
            i, k, j = operation.i, operation.k, operation.j
            if k is None:
                text[i, j] = f"F{j}"
                continue
            later, earlier = text.get((k, j), ""), text.get((i, k), "")
            swept = reversed(operation.swept)
            if operation.mode is Mode.TANGENT:
                later = " ".join(f"Ḟ{link + 1}" for link in swept)
            elif operation.mode is Mode.ADJOINT:
                earlier = " ".join(f"F̄{link + 1}" for link in swept)
            text[i, j] = f"({later} {earlier})"
        return text[self.operations[-1].i, self.operations[-1].j]

    def _table(self) -> tuple[str, Sequence[str], Sequence[Sequence[object]]]:
        """Return the table of the steps, which are counted from 1."""
        columns = zip(self.operations, self.costs, self.predecessors, strict=True)
        rows = [
            (number, operation, cost, " ".join(str(need + 1) for need in needs))
            for number, (operation, cost, needs) in enumerate(columns, start=1)
        ]
        return f"Elimination sequence, {self.total} fma: {self.bracketing()}", _HEAD, rows
