"""The problem: a chain of elemental Jacobians with their sizes and the costs of their models."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, SupportsIndex, overload

import numpy as np

from jcdp_core.arguments import expect, positive_integer
from jcdp_core.errors import InvalidChainError
from jcdp_core.tables import Tabular

__all__ = ["CHAIN_ADVICE", "ElementalJacobian", "JacobianChain"]

CHAIN_ADVICE: Final = "build one by JacobianChain.from_sizes(sizes, edges)"
"""Advice in errors of functions that were given something other than a chain."""

_HEAD: Final = ("link", "inputs n", "outputs m", "|E|", "tangent fma", "adjoint fma")


def _positive(value: SupportsIndex, what: str) -> int:
    """Return the value as a Python integer, or say what is wrong with it."""
    number = positive_integer(value)
    if not number:
        raise InvalidChainError(f"{what} is {value!r}, which is not a positive integer; give an int ≥ 1")
    return number


@dataclass(frozen=True, slots=True)
class ElementalJacobian:
    """Describe one link: the Jacobian of F_i: R^n → R^m, and what its tangent and adjoint models cost.

    Parameters
    ----------
    n, m : int
        Numbers of inputs and outputs (elements).
    edges : int
        Edges of the scalar graph of F_i: local partial derivatives, and what its tape stores.
    tangent_cost, adjoint_cost : int, optional
        Cost of one direction in each mode (fma); by default one fma per edge.
    tangent, adjoint : bool, optional
        Whether each mode is available at all.

    Raises
    ------
    InvalidChainError
        If a number is not a positive integer. NumPy integers are welcome, booleans and floats are not.
    ArgumentTypeError
        If a flag is no bool.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2.

    Examples
    --------
    >>> ElementalJacobian(108, 264, 94710).tangent_cost
    94710
    """

    n: int
    m: int
    edges: int
    tangent_cost: int = None  # type: ignore[assignment]  # always an int after __post_init__
    adjoint_cost: int = None  # type: ignore[assignment]
    tangent: bool = True
    adjoint: bool = True

    def __post_init__(self) -> None:
        """Turn the numbers into Python integers, which cannot overflow."""
        for name in ("n", "m", "edges", "tangent_cost", "adjoint_cost"):
            value = getattr(self, name)
            if value is None and name.endswith("_cost"):
                object.__setattr__(self, name, self.edges)
            elif type(value) is not int or value < 1:
                object.__setattr__(self, name, _positive(value, f"{name} of a link"))
        for name in ("tangent", "adjoint"):
            expect(getattr(self, name), (bool, np.bool_), name, "give True or False")
            object.__setattr__(self, name, bool(getattr(self, name)))


@dataclass(frozen=True, repr=False)  # slots would make a TypeError of assigning to a property
class JacobianChain(Tabular):
    """Hold the chain F' = F'_q · … · F'_1 of elemental Jacobians.

    It has a length, iterates over its links, and can be indexed (0-based) and sliced; a slice is a chain.

    Parameters
    ----------
    links : tuple of ElementalJacobian
        In the order of evaluation, F_1 first; at least one.

    Raises
    ------
    InvalidChainError
        If there is no link, or if the outputs of one are not the inputs of the next.
    ArgumentTypeError
        If a link is something else.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2.

    Examples
    --------
    >>> chain = JacobianChain((ElementalJacobian(3, 2, 7), ElementalJacobian(2, 5, 11)))
    >>> chain.sizes, chain.edges
    ((3, 2, 5), (7, 11))
    >>> print(chain)
    Jacobian chain of 2 links
    link  inputs n  outputs m  |E|  tangent fma  adjoint fma
       1         3          2    7            7            7
       2         2          5   11           11           11
    """

    links: tuple[ElementalJacobian, ...]

    def __post_init__(self) -> None:
        """Check that neighbors fit."""
        expect(self.links, Iterable, "links", "give a list of ElementalJacobian")
        object.__setattr__(self, "links", tuple(self.links))
        if not self.links:
            raise InvalidChainError("the chain has no links; give at least one ElementalJacobian")
        for number, link in enumerate(self.links, start=1):
            expect(link, ElementalJacobian, f"link {number}", "write ElementalJacobian(n, m, edges)")
        for number, (link, following) in enumerate(pairwise(self.links), start=1):
            if link.m != following.n:
                raise InvalidChainError(
                    f"link {number} has {link.m} outputs but link {number + 1} has {following.n} inputs; "
                    "they must be equal"
                )

    @classmethod
    def from_sizes(
        cls,
        sizes: Iterable[SupportsIndex],
        edges: Iterable[SupportsIndex],
        *,
        tangent_costs: Iterable[SupportsIndex] | None = None,
        adjoint_costs: Iterable[SupportsIndex] | None = None,
        tangent: Iterable[bool] | None = None,
        adjoint: Iterable[bool] | None = None,
    ) -> "JacobianChain":
        """Build a chain of q links from plain numbers.

        Parameters
        ----------
        sizes : iterable of int, length q+1
            n_1, m_1, m_2, …, m_q (elements).
        edges : iterable of int, length q
            Edges of each link.
        tangent_costs, adjoint_costs : iterable of int, length q, optional
            Cost of one direction (fma); by default the edges.
        tangent, adjoint : iterable of bool, length q, optional
            Whether each link has the mode; by default all have both.

        Returns
        -------
        JacobianChain
            The chain.

        Raises
        ------
        InvalidChainError
            If the lengths do not fit, or a number is not a positive integer.
        ArgumentTypeError
            If sizes, edges, costs or modes are no lists, or a flag is no bool.

        Examples
        --------
        >>> len(JacobianChain.from_sizes([3, 2, 5], [7, 11]))
        2
        """
        elements, counts = _numbers(sizes, "sizes"), _numbers(edges, "edges")
        if len(elements) != len(counts) + 1:
            raise InvalidChainError(
                f"{len(elements)} sizes and {len(counts)} edge counts given; a chain of q links needs q edge "
                "counts and q+1 sizes n_1, m_1, …, m_q"
            )
        tangents = _costs(tangent_costs, counts, "tangent_costs")
        adjoints = _costs(adjoint_costs, counts, "adjoint_costs")
        modes = [_of_links(tangent, counts, "tangent"), _of_links(adjoint, counts, "adjoint")]
        columns = zip(elements[:-1], elements[1:], counts, tangents, adjoints, *modes, strict=True)
        return cls(tuple(ElementalJacobian(*column) for column in columns))

    def __len__(self) -> int:
        """Return the number of links q."""
        return len(self.links)

    def __iter__(self) -> Iterator[ElementalJacobian]:
        """Iterate over the links, F_1 first."""
        return iter(self.links)

    @overload
    def __getitem__(self, index: SupportsIndex) -> ElementalJacobian: ...

    @overload
    def __getitem__(self, index: slice) -> "JacobianChain": ...

    def __getitem__(self, index: SupportsIndex | slice) -> "ElementalJacobian | JacobianChain":
        """Return a link by its index (0-based), or a slice of the chain as a chain."""
        if not isinstance(index, slice):
            return self.links[index]
        if not self.links[index]:
            raise InvalidChainError(
                f"{index} of {len(self)} links has none; a part of a chain has one at least"
            )
        return JacobianChain(self.links[index])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements of z_0, …, z_q; length q+1."""
        return (self.links[0].n, *(link.m for link in self.links))

    @property
    def edges(self) -> tuple[int, ...]:
        """Edges of each link; length q."""
        return tuple(link.edges for link in self.links)

    @property
    def tangent_costs(self) -> tuple[int, ...]:
        """Cost of one tangent direction through each link (fma); length q."""
        return tuple(link.tangent_cost for link in self.links)

    @property
    def adjoint_costs(self) -> tuple[int, ...]:
        """Cost of one adjoint direction through each link (fma); length q."""
        return tuple(link.adjoint_cost for link in self.links)

    def all_tangent_cost(self) -> int:
        """Return the cost of plain vector tangent mode: n_1 directions through all links (fma).

        Whether all links have that mode does not matter.

        Returns
        -------
        int
            n_1 · Σ tangent_cost.

        Examples
        --------
        >>> JacobianChain.from_sizes([3, 2, 5], [7, 11]).all_tangent_cost()
        54
        """
        return self.sizes[0] * sum(self.tangent_costs)

    def all_adjoint_cost(self) -> int:
        """Return the cost of plain vector adjoint mode: m_q directions through all links (fma).

        Whether all links have that mode does not matter.

        Returns
        -------
        int
            m_q · Σ adjoint_cost.

        Examples
        --------
        >>> JacobianChain.from_sizes([3, 2, 5], [7, 11]).all_adjoint_cost()
        90
        """
        return self.sizes[-1] * sum(self.adjoint_costs)

    def __repr__(self) -> str:
        """Return the expression that makes the chain, by its sizes and edges if these say all."""
        if all(link == ElementalJacobian(link.n, link.m, link.edges) for link in self.links):
            return f"JacobianChain.from_sizes({list(self.sizes)}, {list(self.edges)})"
        return f"JacobianChain({self.links})"

    def _table(self) -> tuple[str, Sequence[str], Sequence[Sequence[object]]]:
        """Return the table of the links; modes that are not available have no cost."""
        rows = [
            (
                number,
                link.n,
                link.m,
                link.edges,
                link.tangent_cost if link.tangent else "-",
                link.adjoint_cost if link.adjoint else "-",
            )
            for number, link in enumerate(self.links, start=1)
        ]
        return f"Jacobian chain of {len(self)} link{'s' * (len(self) > 1)}", _HEAD, rows


def _numbers(values: Iterable[SupportsIndex], name: str) -> list[int]:
    """Return a list of positive integers, checked."""
    expect(values, Iterable, name, "give a list of integers")
    return [_positive(value, f"{name}[{index}]") for index, value in enumerate(values)]


def _costs(costs: Iterable[SupportsIndex] | None, edges: Sequence[int], name: str) -> list[int]:
    """Return the given costs, checked, or one fma per edge."""
    return list(edges) if costs is None else _of_links(_numbers(costs, name), edges, name)


def _of_links(given: Iterable[Any] | None, edges: Sequence[int], name: str) -> list[Any]:
    """Return what is given for each link, by default that it has a mode."""
    if given is None:
        return [True] * len(edges)
    expect(given, Iterable, name, "give a list, one for each link")
    found = list(given)
    if len(found) != len(edges):
        raise InvalidChainError(
            f"{name} has {len(found)} items for {len(edges)} links; give one per link, or None"
        )
    return found
