"""Random Jacobian chains, draw for draw those of the reference implementation in C++.

The C++ standard fixes the engine (mt19937_64) and leaves the distributions to the library, so that one seed
gives different chains with libstdc++ (GCC) and libc++ (Clang). Both flavors are here: the statistics of
Märtens & Naumann (2025) were drawn with libstdc++, their worked example with libc++.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias, final

import numpy as np

from jcdp_core.arguments import expect
from jcdp_core.chain import ElementalJacobian, JacobianChain
from jcdp_core.config import Config
from jcdp_core.errors import ConfigError

__all__ = ["ChainGenerator", "Flavour", "mt19937_64"]

Flavour: TypeAlias = Literal["libstdc++", "libc++"]
"""C++ libraries by the name that `ChainGenerator` knows them by."""

_WORD: Final = (1 << 64) - 1
_STATE, _MIDDLE = 312, 156


def _initial_state(seed: int) -> np.ndarray:
    """Spread *seed* over the 312 words of the state."""
    words = [seed & _WORD]
    for index in range(1, _STATE):
        words.append((6364136223846793005 * (words[-1] ^ (words[-1] >> 62)) + index) & _WORD)
    return np.array(words, dtype=np.uint64)


def _twist(word: np.ndarray, following: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Return the next value of the words *word* from their followers and the words half a state away."""
    mixed = (word & np.uint64(0xFFFFFFFF80000000)) | (following & np.uint64(0x7FFFFFFF))
    return middle ^ (mixed >> np.uint64(1)) ^ (mixed & np.uint64(1)) * np.uint64(0xB5026F5AA96619E9)


def _temper(state: np.ndarray) -> np.ndarray:
    """Return the 312 draws that *state* stands for."""
    x = state ^ ((state >> np.uint64(29)) & np.uint64(0x5555555555555555))
    x ^= (x << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    x ^= (x << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    return x ^ (x >> np.uint64(43))


def mt19937_64(seed: int) -> Iterator[int]:
    """Yield the draws of the 64-bit Mersenne Twister of the C++ standard library, without end.

    The seed is at least 0 and less than 2^64; the draws are uniform in [0, 2^64).

    Notes
    -----
    312 words are made at a time with NumPy (about 0.2 µs a draw). Source: Matsumoto & Nishimura, ACM TOMACS 8
    (1998); Nishimura, ACM TOMACS 10 (2000), for the 64-bit version.

    Examples
    --------
    The C++ standard asks for this 10000th draw of the default seed:

    >>> from itertools import islice
    >>> next(islice(mt19937_64(5489), 9999, None))
    9981545732273789042
    """
    state = _initial_state(seed)
    while True:
        # The second half needs the new first half, and the very last word the new first word.
        state[:_MIDDLE] = _twist(state[:_MIDDLE], state[1 : _MIDDLE + 1], state[_MIDDLE:])
        state[_MIDDLE:-1] = _twist(state[_MIDDLE:-1], state[_MIDDLE + 1 :], state[: _MIDDLE - 1])
        state[-1:] = _twist(state[-1:], state[:1], state[_MIDDLE - 1 : _MIDDLE])
        yield from _temper(state).tolist()


def _uniform_libstdcxx(draws: Iterator[int], low: int, high: int) -> int:
    """Return an integer in [low, high] by the multiplication method (Lemire 2019) of libstdc++."""
    width = high - low + 1
    product = next(draws) * width
    if product & _WORD < width:
        threshold = (_WORD + 1 - width) % width
        while product & _WORD < threshold:
            product = next(draws) * width
    return low + (product >> 64)


def _uniform_libcxx(draws: Iterator[int], low: int, high: int) -> int:
    """Return an integer in [low, high] by libc++'s rejection of low-order bits."""
    span = high - low
    if span == 0:
        return low
    mask = (1 << span.bit_length()) - 1
    while (value := next(draws) & mask) > span:
        pass
    return low + value


_UNIFORM: Final[dict[str, Callable[[Iterator[int], int, int], int]]] = {
    "libstdc++": _uniform_libstdcxx,
    "libc++": _uniform_libcxx,
}
_BELOW_ONE: Final = math.nextafter(1.0, 0.0)


def _uniform_real(draws: Iterator[int], low: float, high: float) -> float:
    """Return a real number in [low, high) from one draw."""
    return low + (high - low) * min(next(draws) * 2.0**-64, _BELOW_ONE)


def _scaled(edges: int, factor: float) -> int:
    """Return edges · factor, rounded half up as std::round does."""
    cost = edges * factor
    whole = math.floor(cost)
    return whole + (cost - whole >= 0.5)


@final
class ChainGenerator:
    """Iterate over the random chains of a configuration.

    Each iteration restarts the stream from the seed; `len` is the number of chains. The chains of the
    first length come first; one engine runs through all lengths.

    Parameters
    ----------
    config : Config
        Lengths, amount, ranges and seed.
    flavour : {"libstdc++", "libc++"}
        Whose integer distribution to follow.

    Raises
    ------
    ConfigError
        If *flavour* is neither of the two.
    ArgumentTypeError
        If *config* is not a `Config`.

    Notes
    -----
    A chain of length q costs about 8q draws, some 6 µs per link. Source: Märtens & Naumann 2025.

    Examples
    --------
    The worked example of the paper:

    >>> config = Config(length=(6,), size_range=(5, 500), dag_size_range=(1000, 100000), seed=2457497973)
    >>> (chain,) = ChainGenerator(config, "libc++")
    >>> chain.sizes, chain.edges
    ((268, 173, 190, 416, 108, 264, 318), (15162, 76665, 77374, 27642, 94710, 95965))
    """

    __slots__ = ("_uniform", "config", "flavour")

    def __init__(self, config: Config, flavour: Flavour = "libstdc++") -> None:
        expect(config, Config, "config", "build one, or read one with read_config(path)")
        if not isinstance(flavour, str) or flavour not in _UNIFORM:
            raise ConfigError(f"flavour {flavour!r} is unknown; choose from {', '.join(_UNIFORM)}")
        self.config = config
        self.flavour = flavour
        self._uniform = _UNIFORM[flavour]

    def __repr__(self) -> str:
        return f"ChainGenerator({self.config!r}, {self.flavour!r})"

    def __len__(self) -> int:
        return self.config.amount * len(self.config.length)

    def __iter__(self) -> Iterator[JacobianChain]:
        draws = mt19937_64(self.config.seed)
        for length in self.config.length:
            for _ in range(self.config.amount):
                yield self._chain(draws, length)

    def _chain(self, draws: Iterator[int], length: int) -> JacobianChain:
        """Draw one chain."""
        links: list[ElementalJacobian] = []
        for _ in range(length):
            # An input size is drawn for every link, although only the first link can choose it.
            n = self._uniform(draws, *self.config.size_range)
            links.append(self._link(draws, links[-1].m if links else n))
        return JacobianChain(tuple(links))

    def _link(self, draws: Iterator[int], n: int) -> ElementalJacobian:
        """Draw one link with input size *n*."""
        config = self.config
        m = self._uniform(draws, *config.size_range)
        for _ in range(3):  # two band widths and the number of non-zeros, which dense chains do not use
            next(draws)
        edges = self._uniform(draws, *config.dag_size_range)
        tangent = _scaled(edges, _uniform_real(draws, *config.tangent_factor_range))
        adjoint = _scaled(edges, _uniform_real(draws, *config.adjoint_factor_range))
        return ElementalJacobian(n, m, edges, tangent_cost=tangent, adjoint_cost=adjoint)
