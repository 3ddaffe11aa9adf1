"""Chains for the tests of jcdp_core: hypothesis strategies, the paper's example and its random chains."""

from functools import cache
from itertools import groupby, islice, pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from jcdp_core import ChainGenerator, Config, ElementalJacobian, JacobianChain

CHAIN_A = JacobianChain.from_sizes(
    sizes=[268, 173, 190, 416, 108, 264, 318], edges=[15162, 76665, 77374, 27642, 94710, 95965]
)
"""The chain of the worked examples in Märtens & Naumann 2025."""

PUBLISHED = Config(
    length=(1, 2, 3, 4, 5, 6), amount=10000, size_range=(5, 50), dag_size_range=(1000, 10000), seed=4711
)
"""Settings of the published chains, whose lengths go on to 8."""


@cache
def published_chains():
    """Return the first 2000 published chains of each length."""
    groups = groupby(ChainGenerator(PUBLISHED), key=len)
    return {length: list(islice(group, 2000)) for length, group in groups}


deterministic = settings(
    derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def chains(draw, *, max_length=5, max_size=9, max_edges=40, own_costs=False, modes=False, tied=False):
    """Draw a chain; small numbers, so that ties are frequent; few different ones if they shall be rife."""
    length = draw(st.integers(1, max_length))
    size = st.sampled_from([2, 4, 8]) if tied else st.integers(1, max_size)
    sizes = draw(st.lists(size, min_size=length + 1, max_size=length + 1))
    numbers = st.sampled_from([1, 2, 4, 8, 16]) if tied else st.integers(1, max_edges)
    links = []
    for n, m in pairwise(sizes):
        costs = (draw(numbers), draw(numbers)) if own_costs else (None, None)
        tangent, adjoint = draw(
            st.sampled_from([(True, True), (True, False), (False, True)] if modes else [(True, True)])
        )
        links.append(ElementalJacobian(n, m, draw(numbers), *costs, tangent, adjoint))
    return JacobianChain(tuple(links))
