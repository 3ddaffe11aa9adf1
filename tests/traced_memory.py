"""What tracemalloc sees of a call."""

import tracemalloc


def traced_peak(call):
    """Return the most bytes that a call holds at a time; what it has loaded before does not count."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
