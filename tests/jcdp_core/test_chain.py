"""Chains: what is accepted, what is refused and how, and the plain modes' costs."""

import dataclasses

import numpy as np
import pytest
from jcdp_strategies import CHAIN_A

from jcdp_core import ArgumentTypeError, ElementalJacobian, InvalidChainError, JacobianChain, JcdpError


def test_plain_modes_of_the_paper_example():
    assert CHAIN_A.all_tangent_cost() == 103854824
    assert CHAIN_A.all_adjoint_cost() == 123230724


def test_plain_modes_use_their_own_costs():
    chain = JacobianChain.from_sizes([3, 2, 5], [7, 11], tangent_costs=[1, 2], adjoint_costs=[10, 20])
    assert chain.all_tangent_cost() == 3 * 3
    assert chain.all_adjoint_cost() == 5 * 30


def test_from_sizes_equals_links():
    links = (ElementalJacobian(3, 2, 7), ElementalJacobian(2, 5, 11, tangent_cost=12, adjoint_cost=13))
    chain = JacobianChain.from_sizes([3, 2, 5], [7, 11], tangent_costs=[7, 12], adjoint_costs=[7, 13])
    assert chain == JacobianChain(links)
    assert len(chain) == 2
    assert chain.sizes == (3, 2, 5)
    assert chain.edges == (7, 11)
    assert chain.tangent_costs == (7, 12)
    assert chain.adjoint_costs == (7, 13)


def test_numpy_integers_become_python_integers():
    chain = JacobianChain.from_sizes(np.array([3, 2], np.int32), np.array([7], np.uint8))
    assert all(type(number) is int for number in (*chain.sizes, *chain.edges, *chain.tangent_costs))


def test_integers_of_any_size():
    chain = JacobianChain.from_sizes([10**30, 10**40], [10**50])
    assert chain.all_adjoint_cost() == 10**90


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None, np.float64(2), np.bool_(True)])
def test_sizes_must_be_positive_integers(value):
    with pytest.raises(InvalidChainError, match=r"sizes\[1\] is .*; give an int ≥ 1"):
        JacobianChain.from_sizes([3, value, 5], [7, 11])


@pytest.mark.parametrize("name", ["n", "m", "edges", "tangent_cost", "adjoint_cost"])
def test_each_number_of_a_link_is_checked(name):
    with pytest.raises(InvalidChainError, match=f"{name} of a link is -4"):
        ElementalJacobian(**{"n": 3, "m": 2, "edges": 7, name: -4})


@pytest.mark.parametrize("name", ["tangent", "adjoint"])
def test_modes_are_available_or_not(name):
    with pytest.raises(ArgumentTypeError, match=f"{name} is the str 'no', where a bool is expected"):
        ElementalJacobian(3, 2, 7, **{name: "no"})


def test_neighbors_must_fit():
    with pytest.raises(InvalidChainError, match="link 1 has 2 outputs but link 2 has 4 inputs"):
        JacobianChain((ElementalJacobian(3, 2, 7), ElementalJacobian(4, 5, 11)))


def test_links_are_elemental_jacobians():
    with pytest.raises(
        ArgumentTypeError, match=r"link 1 is the tuple \(3, 2, 7\), where an Elem.*; write ElementalJac"
    ):
        JacobianChain(((3, 2, 7),))


def test_a_chain_has_links():
    with pytest.raises(InvalidChainError, match="no links"):
        JacobianChain(())


def test_lengths_must_fit():
    with pytest.raises(InvalidChainError, match=r"2 sizes and 2 edge counts"):
        JacobianChain.from_sizes([3, 2], [7, 11])
    with pytest.raises(InvalidChainError, match="tangent_costs has 1 items for 2 links"):
        JacobianChain.from_sizes([3, 2, 5], [7, 11], tangent_costs=[1])


def test_a_chain_is_a_sequence_of_links():
    assert CHAIN_A[0] == CHAIN_A.links[0]
    assert CHAIN_A[-1] is CHAIN_A.links[-1]
    assert tuple(CHAIN_A) == CHAIN_A.links
    assert [link.m for link in reversed(CHAIN_A)] == [318, 264, 108, 416, 190, 173]
    assert CHAIN_A.links[2] in CHAIN_A
    assert CHAIN_A[1:3] == JacobianChain(CHAIN_A.links[1:3])
    with pytest.raises(IndexError):
        _ = CHAIN_A[6]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 4), r"sizes is the int 3, where an Iterable is expected; give a list of integers"),
        (([3, 4], 5), r"edges is the int 5, where an Iterable is expected"),
        ((None, [5]), r"sizes is the NoneType None, where"),
    ],
)
def test_sizes_and_edges_are_lists(arguments, message):
    with pytest.raises(ArgumentTypeError, match=message):
        JacobianChain.from_sizes(*arguments)
    with pytest.raises(ArgumentTypeError, match="tangent_costs is the int 7"):
        JacobianChain.from_sizes([3, 2], [7], tangent_costs=7)
    with pytest.raises(ArgumentTypeError, match="links is the int 7"):
        JacobianChain(7)


def test_chains_are_frozen_and_hashable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CHAIN_A.links = ()
    assert hash(CHAIN_A) == hash(JacobianChain(CHAIN_A.links))


def test_errors_are_value_errors_with_one_base():
    assert issubclass(InvalidChainError, JcdpError)
    assert issubclass(InvalidChainError, ValueError)


def test_parts_without_links_are_named():
    with pytest.raises(InvalidChainError, match=r"slice\(2, 1, None\) of 6 links has none"):
        CHAIN_A[2:1]
