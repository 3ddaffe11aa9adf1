"""The walk through the steps of an array sweep that counts which directions are alive at the same time.

It forms no derivatives. Each step tells the arrays that it holds: what it reads, what it returns, and the
products that are added up between. Identities stay diagonals for a while, which take no memory for each
direction; seeds that are handed over belong to somebody else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tapesplit.recording.tape import Tape
from tapesplit.recording.values import is_complex_value, real_count

__all__ = ["MemoryWalk"]


@dataclass(slots=True)
class MemoryWalk:
    """Counts the numbers that one direction takes in all values that are alive.

    ``origins`` has the values whose directions are diagonals, with the first direction of each; ``owned``
    those that further directions can be added to in place. ``peaks`` are the most numbers, and the most of
    them while there is something besides that all directions share, which is when ``has_shared`` is set.
    ``shared`` are the numbers of that, at most, but for partial derivatives of merged operations.
    """

    tape: Tape
    sizes: dict[int, int]
    alive: dict[int, int] = field(default_factory=dict)
    origins: dict[int, int] = field(default_factory=dict)
    owned: set[int] = field(default_factory=set)
    total: int = 0
    has_shared: bool = False
    shared: int = 0
    peaks: list[int] = field(default_factory=lambda: [0, 0])

    def seed(self, indices: Sequence[int], *, identity: bool, owned: bool = False) -> None:
        """Begin with the identity, or with directions that are handed over, maybe for good."""
        start = 0
        for index in indices:
            is_complex = self.is_complex(index)
            if identity and not is_complex:
                self.origins[index] = start
            self.keep(index, self.sizes[index] if is_complex or owned else 0)
            start += real_count(self.tape.values[index])

    def hold(self, numbers: int) -> None:
        """Take note of arrays that are needed for a moment."""
        self.peaks[self.has_shared] = max(self.peaks[self.has_shared], self.total + numbers)

    def share(self, numbers: int) -> None:
        """Take note of arrays that all directions need for a moment."""
        self.shared = max(self.shared, numbers)
        self.has_shared = self.has_shared or numbers > 0

    def keep(self, index: int, numbers: int) -> None:
        """Let a value have directions of this size."""
        self.total += numbers - self.alive.get(index, 0)
        self.alive[index] = numbers
        self.hold(0)

    def keep_diagonal(self, index: int, origin: int) -> None:
        """Let a value have a diagonal, which begins with this direction."""
        self.keep(index, 0)
        self.origins[index] = origin

    def drop(self, index: int) -> None:
        """Let go of the directions of a value."""
        self.total -= self.alive.pop(index, 0)
        self.origins.pop(index, None)

    def make(self, index: int, held: int) -> None:
        """Let a value have directions that are made while arrays of so many numbers are held."""
        self.hold(held)
        self.keep(index, self.sizes[index])

    def add(self, index: int, held: int) -> None:
        """Add to the adjoints of a value while arrays of so many numbers are held."""
        size = self.sizes[index]
        if index in self.alive:
            zeros = self.opened(index)
            self.hold(held + zeros + (0 if index in self.owned or zeros else size))
            self.owned.add(index)
            self.origins.pop(index, None)
        self.keep(index, size)

    def write_out(self, index: int, numbers: int) -> None:
        """Multiply the factors of adjoints, which are alive until this is done."""
        self.hold(numbers)
        self.sizes[index] = numbers
        self.keep(index, numbers)

    def opened(self, index: int) -> int:
        """Count the numbers that a diagonal takes once its zeros are written out."""
        return self.sizes[index] if index in self.origins else 0

    def common_origin(self, indices: Sequence[int]) -> int | None:
        """Return the first direction of the diagonals of some values, None if one has another or none."""
        if not self.origins:  # as in most of a long sweep
            return None
        found = {self.origins.get(index) for index in indices}
        return found.pop() if len(found) == 1 else None

    def takes_diagonal(self, index: int, origin: int) -> bool:
        """Tell whether the adjoints of a value stay a diagonal when this one is added to them."""
        return index not in self.alive or self.origins.get(index) == origin

    def collect(self, indices: Sequence[int], *, whole: bool = True) -> tuple[int, int, int]:
        """End: directions of several values, a diagonal or part of all are joined.

        Return the peaks, and the numbers that all directions share.
        """
        self.has_shared = False
        if len(indices) > 1 or not whole or indices[0] in self.origins or self.is_complex(indices[0]):
            self.hold(sum(self.sizes[index] for index in indices))
        return self.peaks[0], self.peaks[1], self.shared

    def is_complex(self, index: int) -> bool:
        """Tell whether a value is complex."""
        return is_complex_value(self.tape.values[index])
