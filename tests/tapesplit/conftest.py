"""What every test of tapesplit must leave behind: autograd as it was."""

import gc
import threading

import pytest
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import box_type_mappings, trace_stack

from tapesplit.tracing import holds_tracing_lock


@pytest.fixture(autouse=True)
def _restored_tracer():
    yield
    assert trace_stack.top == -1
    assert not holds_tracing_lock()
    assert gc.isenabled()
    assert {box.__name__ for box in box_type_mappings.values()}.issuperset({"ArrayBox"})
    assert box_type_mappings[float] is ArrayBox


@pytest.fixture
def no_new_threads():
    """Fail if a test leaves threads behind other than the kept pools."""
    before = threading.active_count()
    yield
    extra = [t for t in threading.enumerate() if not t.name.startswith("tapesplit")]
    assert len(extra) <= before
