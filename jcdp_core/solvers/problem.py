"""What a solver is asked: a chain, its machines, and the constraints that decide which steps are allowed."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from jcdp_core.arguments import expect, positive_or_none, seconds_or_none
from jcdp_core.chain import CHAIN_ADVICE, JacobianChain
from jcdp_core.errors import InfeasibleError, SolverError

__all__ = ["Problem"]

_MOST_SHARING: Final = 100_000
"""Machines of use, at most, if they share memory: solvers keep lists with an item for each."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Hold a chain with the settings of one `solve` call.

    Parameters
    ----------
    chain : JacobianChain
        The chain.
    machines : int or None, optional
        Number of machines; None for as many as can be used.
    matrix_free : bool, optional
        Whether tangent and adjoint eliminations are allowed; else only accumulations and products.
    memory_limit : int, optional
        Edges that each machine can tape; limits adjoint steps.
    shared_memory : bool, optional
        Whether a step whose pool has t machines may tape t times as much.
    time_limit : float, optional
        Seconds after which a search returns the best that it knows.

    Raises
    ------
    SolverError
        If a number is out of range, or memory is to be shared among unlimited machines or among more than
        100 000 that are of use.
    ArgumentTypeError
        If the chain or a setting has the wrong type.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2 and 3.

    Examples
    --------
    >>> problem = Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=2, memory_limit=10)
    >>> problem.adjoint_allowed(0, 0), problem.adjoint_allowed(1, 1)
    (True, False)
    """

    chain: JacobianChain
    machines: int | None = 1
    matrix_free: bool = True
    memory_limit: int | None = None
    shared_memory: bool = False
    time_limit: float | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        expect(self.chain, JacobianChain, "chain", CHAIN_ADVICE)
        for name in ("matrix_free", "shared_memory"):
            expect(getattr(self, name), (bool, np.bool_), name, "give True or False")
            object.__setattr__(self, name, bool(getattr(self, name)))
        for name in ("machines", "memory_limit"):
            object.__setattr__(self, name, positive_or_none(getattr(self, name), name))
        object.__setattr__(self, "time_limit", seconds_or_none(self.time_limit))
        if self.shared_memory and self.machines is None:
            raise SolverError(
                "shared_memory=True with machines=None leaves memory unlimited; give a number of machines"
            )
        if self.pools_matter and self.useful_machines > _MOST_SHARING:
            raise SolverError(
                f"{self.useful_machines} machines are of use with memory for {self.memory_limit} edges each, "
                f"and at most {_MOST_SHARING} can share it; give fewer machines, or a larger memory_limit"
            )

    @property
    def pools_matter(self) -> bool:
        """Whether a step may tape more on a larger pool: where machines share memory, and that is limited."""
        return self.shared_memory and self.memory_limit is not None

    @property
    def useful_machines(self) -> int:
        """Machines that can be of use: one a link, or as many as hold all tapes at once if they share memory.

        Examples
        --------
        >>> chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
        >>> Problem(chain, machines=9).useful_machines
        2
        >>> Problem(chain, machines=9, memory_limit=4, shared_memory=True).useful_machines
        5
        """
        useful, limit = len(self.chain), self.memory_limit
        if self.shared_memory and limit is not None:
            useful = sum(-(-link.edges // limit) if link.adjoint else 1 for link in self.chain.links)
        return min(self.machines or useful, useful)

    def edge_limit(self, pool_size: int = 1) -> int | None:
        """Return how many edges a step may tape.

        Parameters
        ----------
        pool_size : int, optional
            Machines in the step's pool; counts only if memory is shared.

        Returns
        -------
        int or None
            The limit, or None if there is none.

        Examples
        --------
        >>> chain = JacobianChain.from_sizes([3, 2], [7])
        >>> Problem(chain, machines=4, memory_limit=10, shared_memory=True).edge_limit(3)
        30
        """
        if self.memory_limit is None:
            return None
        return self.memory_limit * pool_size if self.shared_memory else self.memory_limit

    def tangent_allowed(self, link: int) -> bool:
        """Tell whether a step may run the tangent model of a link.

        Parameters
        ----------
        link : int
            Index of the link (0-based).

        Returns
        -------
        bool
            True if the mode is available.

        Examples
        --------
        >>> Problem(JacobianChain.from_sizes([3, 2], [7])).tangent_allowed(0)
        True
        """
        return self.chain.links[link].tangent

    def adjoint_allowed(self, first: int, last: int, pool_size: int = 1) -> bool:
        """Tell whether one step may run the adjoint models of some neighboring links.

        Parameters
        ----------
        first, last : int
            Indices of the links (0-based, both included).
        pool_size : int, optional
            Machines in the step's pool; counts only if memory is shared.

        Returns
        -------
        bool
            True if each link has the mode and the tape of all of them fits.

        Examples
        --------
        >>> problem = Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), memory_limit=17)
        >>> problem.adjoint_allowed(1, 1), problem.adjoint_allowed(0, 1)
        (True, False)
        """
        links = self.chain.links[first : last + 1]
        limit = self.edge_limit(pool_size)
        return all(link.adjoint for link in links) and (
            limit is None or sum(link.edges for link in links) <= limit
        )

    def check_feasible(self, pool_size: int | None = None) -> None:
        """Raise if there is a link that no step may run.

        A problem is feasible exactly if each link has a mode that is allowed with the largest pool: then
        accumulating all links and multiplying is a solution.

        Parameters
        ----------
        pool_size : int, optional
            Largest pool that a step can have; by default all machines.

        Raises
        ------
        InfeasibleError
            The message names the link and the reason.

        Examples
        --------
        >>> from jcdp_core import ElementalJacobian
        >>> chain = JacobianChain((ElementalJacobian(3, 2, 7, tangent=False),))
        >>> Problem(chain, memory_limit=5).check_feasible()
        Traceback (most recent call last):
            ...
        jcdp_core.errors.InfeasibleError: link 1 has no tangent mode, and its adjoint tapes 7 edges ...
        """
        pool_size = pool_size or self.machines or 1
        for index, link in enumerate(self.chain.links):
            if link.tangent or self.adjoint_allowed(index, index, pool_size):
                continue
            if not link.adjoint:
                raise InfeasibleError(
                    f"link {index + 1} has neither a tangent nor an adjoint mode, so no step can use it; "
                    "make one of them available"
                )
            raise InfeasibleError(
                f"link {index + 1} has no tangent mode, and its adjoint tapes {link.edges} edges where "
                f"{self.edge_limit(pool_size)} are allowed; raise memory_limit or provide a tangent mode"
            )
