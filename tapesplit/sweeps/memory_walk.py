"""The dry run of an array sweep that counts how many numbers are alive at the same time.

It computes no derivatives. Each step reports the arrays that it holds: what it reads, what it returns, and
the products that are added up in between. Diagonals, as an identity is at first, take no memory for each
direction; nor do seeds that belong to the caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tapesplit.recording.tape import Tape
from tapesplit.recording.values import is_complex_value, real_count

__all__ = ["MemoryWalk"]


@dataclass(slots=True)
class MemoryWalk:
    """Counts the numbers that one direction takes in all values that are alive.

    ``origins`` has the values whose directions are diagonals, with the first direction of each; ``owned``
    those that further directions can be added to in place; ``joined`` those whose adjoints arrive as factors,
    with the numbers that these take at most. ``has_shared`` tells whether the current step
    holds something that all directions share: ``peaks`` has the most numbers in steps without and in those
    with it. ``shared`` is how many shared numbers there are at most, apart from partial derivatives of merged
    operations.
    """

    tape: Tape
    sizes: dict[int, int]
    joined: Mapping[int, int] = field(default_factory=dict)
    alive: dict[int, int] = field(default_factory=dict)
    origins: dict[int, int] = field(default_factory=dict)
    owned: set[int] = field(default_factory=set)
    total: int = 0
    has_shared: bool = False
    shared: int = 0
    peaks: list[int] = field(default_factory=lambda: [0, 0])

    def seed(self, indices: Sequence[int], *, identity: bool, owned: bool = False) -> None:
        """Begin with the identity, or with directions of the caller, which the sweep may own."""
        start = 0
        for index in indices:
            is_complex = self.is_complex(index)
            if identity and not is_complex:
                self.origins[index] = start
            self.keep(index, self.sizes[index] if is_complex or owned else 0)
            start += real_count(self.tape.values[index])

    def hold(self, numbers: int) -> None:
        """Count numbers that are held for a moment besides all that is alive."""
        self.peaks[self.has_shared] = max(self.peaks[self.has_shared], self.total + numbers)

    def share(self, numbers: int) -> None:
        """Count numbers that are held for a moment, once for all directions."""
        self.shared = max(self.shared, numbers)
        self.has_shared = self.has_shared or numbers > 0

    def keep(self, index: int, numbers: int) -> None:
        """Set how many numbers each direction of a value takes from now on."""
        self.total += numbers - self.alive.get(index, 0)
        self.alive[index] = numbers
        self.hold(0)

    def keep_diagonal(self, index: int, origin: int) -> None:
        """Give a value a diagonal whose first direction is ``origin``."""
        self.keep(index, 0)
        self.origins[index] = origin

    def drop(self, index: int) -> None:
        """Free the directions of a value."""
        self.total -= self.alive.pop(index, 0)
        self.origins.pop(index, None)

    def make(self, index: int, held: int) -> None:
        """Create the directions of a value, while so many numbers are held."""
        self.hold(held)
        self.keep(index, self.sizes[index])

    def add(self, index: int, held: int) -> None:
        """Add adjoints to those of a value, while so many numbers are held."""
        if index in self.joined:
            self.keep(index, self.joined[index])
            return
        size = self.sizes[index]
        if index in self.alive:
            zeros = self.opened(index)
            self.hold(held + zeros + (0 if index in self.owned or zeros else size))
            self.owned.add(index)
            self.origins.pop(index, None)
        self.keep(index, size)

    def handed(self, index: int) -> int:
        """Count the numbers that a product passes to an argument for each direction; factors are views."""
        return 0 if index in self.joined else self.sizes[index]

    def write_out(self, index: int) -> None:
        """Multiply out the factored adjoints of a value; the factors are alive until this is done."""
        self.hold(self.sizes[index])
        self.keep(index, self.sizes[index])

    def opened(self, index: int) -> int:
        """Count the numbers that a diagonal takes once its zeros are written out."""
        return self.sizes[index] if index in self.origins else 0

    def common_origin(self, indices: Sequence[int]) -> int | None:
        """Return the first direction of the diagonals of some values; None if they differ or one has none."""
        if not self.origins:  # as in most of a long sweep
            return None
        found = {self.origins.get(index) for index in indices}
        return found.pop() if len(found) == 1 else None

    def takes_diagonal(self, index: int, origin: int) -> bool:
        """Tell whether the adjoints of a value stay a diagonal when this one is added to them."""
        return index not in self.alive or self.origins.get(index) == origin

    def collect(self, indices: Sequence[int], *, whole: bool = True) -> tuple[int, int, int]:
        """Count the result, unless it is the array of one value's directions, and finish.

        Returns both peaks, and the numbers that all directions share. `whole` tells that no direction is
        missing in that array.
        """
        self.has_shared = False
        if len(indices) > 1 or not whole or indices[0] in self.origins or self.is_complex(indices[0]):
            self.hold(sum(self.sizes[index] for index in indices))
        return self.peaks[0], self.peaks[1], self.shared

    def is_complex(self, index: int) -> bool:
        """Tell whether a value is complex."""
        return is_complex_value(self.tape.values[index])
