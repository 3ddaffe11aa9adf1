"""Random chains: the engine of the C++ standard, both distribution flavors, and the published chains."""

import hashlib
import itertools

import pytest
from jcdp_strategies import published_chains

from jcdp_core.config import Config
from jcdp_core.errors import ArgumentTypeError, ConfigError
from jcdp_core.generator import ChainGenerator, _uniform_libcxx, _uniform_libstdcxx, _uniform_real, mt19937_64
from jcdp_core.solvers.dynamic_programming import makespans
from jcdp_core.solvers.problem import Problem

# sha256 of the decimal DP makespans of the first 2000 chains, one per line; row q, column m = 1..q.
# Data: S. Märtens, Zenodo 10.5281/zenodo.15373160, CC BY 4.0.
CHECKSUMS = {
    2: [
        "0aa836b1faf194a4e6acc583630057ff9b9f362e49654d2eca9847f0724ca81a",
        "965ac8735a81d65317fac4c34b202dccd7b680d85b457209194619b26ecb1018",
    ],
    3: [
        "a71bca5b08243d97d33220cd950803a15b353e0275ad4298f9db87d5bb780b75",
        "40d0fba5ae01b06dda75975681e9084845e52687034552f39180ea357de88c69",
        "85f77cc310d7e95735cde9a2bd68ca27961a9ebd926d297e5c591eef8fc4f712",
    ],
    4: [
        "0cbf0af75d8d42a6130c318ae3c83b5ebb4b16b21d19cd516e1939c861c69037",
        "70b506bae726303c9f1ae6108f74f09db5cf35dc54b8f85f3d94ed560511ef80",
        "acc61c09dae03500c9f22eec9b1301cfaa3156cd1e2685b248022085a1ae3c44",
        "1fc145bb15f7b47ac2fc92ff3e9d12675c6f12de04f1b427152a7b64bd6cf857",
    ],
    5: [
        "306cdf6051c8cff292e93b06f513a000c2d22879754534b949e49ad207bd6ac6",
        "6c25c2d13505a0b0c3c3a9f12d9590b8e22c11be378390b5bd1bf74eb65c05eb",
        "1b520842ef6903310e67cc272b41384ef78969dc00193a3162e6883fdcaeeb98",
        "4567cb6c30dcfde556af467370ee1293213b7d01755624be97735b819efc19c1",
        "d310a5a5c85458d6c0f94a431e9ddcc7fdb0b3beadf5811025ec1e01c8fd2a29",
    ],
    6: [
        "f42100f64f7bb2dd19162aab598a873a3c301a03b68b2428454c1f64485fd266",
        "94c6789f977c7e678030925a9d2ddd5bfb6b13d4709191e698063ddf4aa334d2",
        "e0f7c9ca74cfac01e70b6a43fd38c96331fed67963908eb9902e11bc7fe7b618",
        "081c2516fe71537b1601c707624174c5278f9686124f5a6e5e80e0b80f882233",
        "0762aa08b177b44a8493b2aebb6a1718993f253440104abd3505e03ce078688e",
        "b9ccc1e377335e658dd9c0b3dc3aac6d3252feb1d95b5554a33b5d2c6b9bc38b",
    ],
}


def _digest(makespans):
    return hashlib.sha256("".join(f"{makespan}\n" for makespan in makespans).encode()).hexdigest()


def test_engine_is_that_of_the_standard():
    draws = list(itertools.islice(mt19937_64(5489), 10000))
    assert draws[0] == 14514284786278117030
    assert draws[9999] == 9981545732273789042


@pytest.mark.parametrize("length", CHECKSUMS)
def test_the_chains_have_the_published_makespans(length):
    rows = [makespans(Problem(chain, machines=length)) for chain in published_chains()[length]]
    assert [_digest(column) for column in zip(*rows, strict=True)] == CHECKSUMS[length]


def test_regenerates_the_worked_example_with_libcxx_only():
    config = Config(length=(6,), size_range=(5, 500), dag_size_range=(1000, 100000), seed=2457497973)
    (chain,) = ChainGenerator(config, "libc++")
    assert chain.sizes == (268, 173, 190, 416, 108, 264, 318)
    assert chain.edges == (15162, 76665, 77374, 27642, 94710, 95965)
    (other,) = ChainGenerator(config, "libstdc++")
    assert other.sizes != chain.sizes


def test_costs_are_rounded_multiples_of_the_edges_and_do_not_move_the_stream():
    ranges = {"size_range": (2, 9), "dag_size_range": (10, 1000), "seed": 3}
    plain = Config(length=(3,), amount=50, **ranges)
    factors = Config(
        length=(3,), amount=50, tangent_factor_range=(1.5, 1.5), adjoint_factor_range=(2.0, 3.0), **ranges
    )
    for chain, scaled in zip(ChainGenerator(plain), ChainGenerator(factors), strict=True):
        assert (chain.sizes, chain.edges) == (scaled.sizes, scaled.edges)
        assert chain.tangent_costs == chain.adjoint_costs == chain.edges
        # Halves are rounded up, as std::round does; Python's round would give the even neighbor.
        assert scaled.tangent_costs == tuple((3 * edges + 1) // 2 for edges in chain.edges)
        assert all(
            2 * edges <= cost <= 3 * edges
            for edges, cost in zip(chain.edges, scaled.adjoint_costs, strict=True)
        )


def test_every_iteration_restarts_the_stream():
    generator = ChainGenerator(Config(length=(2, 3), amount=4, size_range=(1, 9), dag_size_range=(1, 99)))
    assert len(generator) == 8
    first = list(generator)
    assert [len(chain) for chain in first] == [2, 2, 2, 2, 3, 3, 3, 3]
    assert first == list(generator)


@pytest.mark.parametrize("flavour", ["libstdc++", "libc++"])
def test_sizes_fill_their_range(flavour):
    config = Config(length=(5,), amount=200, size_range=(3, 7), dag_size_range=(10, 12))
    chains = list(ChainGenerator(config, flavour))
    assert {size for chain in chains for size in chain.sizes} == {3, 4, 5, 6, 7}
    assert {edges for chain in chains for edges in chain.edges} == {10, 11, 12}


def test_libstdcxx_redraws_below_the_threshold():
    # Width 3: 2^64 mod 3 = 1, so that only the draw 0 (low word 0 < 1) is rejected.
    assert _uniform_libstdcxx(iter([0, 2**63]), 5, 7) == 6
    # The draw whose low word is 1 lies below the width and at the threshold: it is kept.
    assert _uniform_libstdcxx(iter([(2**65 + 1) // 3]), 5, 7) == 7
    assert _uniform_libstdcxx(iter([2**64 - 1]), 0, 2**64 - 1) == 2**64 - 1


def test_libcxx_redraws_above_the_range():
    assert _uniform_libcxx(iter([0b1111, 0b1011, 0b0010]), 5, 7) == 7
    assert _uniform_libcxx(iter([0b1110]), 0, 3) == 2  # a power of two rejects nothing
    assert _uniform_libcxx(iter([]), 4, 4) == 4  # one value needs no draw


def test_real_draws_stay_below_the_upper_end():
    assert _uniform_real(iter([2**64 - 1]), 0.0, 1.0) < 1.0
    assert _uniform_real(iter([2**63]), 2.0, 4.0) == 3.0


def test_unknown_flavour_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"flavour 'msvc' is unknown; choose from libstdc\+\+, libc\+\+"):
        ChainGenerator(Config(), "msvc")


def test_repr_names_configuration_and_flavour():
    assert repr(ChainGenerator(Config(), "libc++")) == f"ChainGenerator({Config()!r}, 'libc++')"


def test_the_settings_are_a_config():
    with pytest.raises(
        ArgumentTypeError, match=r"config is the str 'x', where a Config is expected; build one, or"
    ):
        ChainGenerator("x")
    with pytest.raises(ConfigError, match=r"flavour \['libc\+\+'\] is unknown; choose from"):
        ChainGenerator(Config(), ["libc++"])
