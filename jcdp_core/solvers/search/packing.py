"""Packing: the last decisions of the search in reversed time, when only accumulations are left.

Nothing waits for them there. So all that matters is which machine runs which one; on each machine they run in
the order in which they are released.
"""

from collections.abc import Sequence

__all__ = ["pack"]


def pack(jobs: Sequence[tuple[int, int]], available: Sequence[int], end: int) -> tuple[int, ...] | None:
    """Place jobs on machines so that all finish in time.

    Jobs are pairs of release time and duration, by ascending release; long ones first is quickest.
    `available` has the time when each machine becomes free. All times are in fma. Returns the start of each
    job, or None if they cannot all finish by `end`.

    Notes
    -----
    Exponential in the number of jobs. Branches are cut by the time that machines lose: by waiting, and at the
    end where it is too short for the jobs that are left.

    Examples
    --------
    >>> pack([(0, 5), (0, 4), (2, 3)], [0, 1], 7), pack([(0, 5), (0, 4), (2, 3)], [0, 1], 6)
    ((1, 0, 4), None)
    """
    shortest = [duration for _, duration in jobs]
    for index in range(len(jobs) - 2, -1, -1):
        shortest[index] = min(shortest[index : index + 2])

    def place(index: int, free: list[int], spare: int) -> tuple[int, ...] | None:
        release, duration = jobs[index]
        if index == len(jobs) - 1:
            start = max(release, min(free, default=end))
            return (start,) if start + duration <= end else None
        for machine, since in enumerate(free):
            start = max(release, since)
            finish = start + duration
            ample = end - finish >= shortest[index + 1]
            lost = start - since if ample else end - since - duration
            if finish <= end and lost <= spare and since not in free[:machine]:
                others = free[:machine] + free[machine + 1 :]
                rest = place(index + 1, [*others, finish] if ample else others, spare - lost)
                if rest is not None:
                    return (start, *rest)
        return None

    if max(available) > end:
        return None
    usable = [since for since in available if end - since >= shortest[0]]
    spare = sum([end - since for since in usable]) - sum([duration for _, duration in jobs])
    return place(0, usable, spare) if spare >= 0 else None
