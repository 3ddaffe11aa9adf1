"""What every test of tapesplit must leave behind: autograd as it was."""

import gc

import numpy as np
import pytest
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import box_type_mappings, trace_stack

from tapesplit import shared_plans
from tapesplit.recording.tracing import holds_tracing_lock


@pytest.fixture(autouse=True)
def _no_plans_of_other_tests(monkeypatch):
    monkeypatch.setattr(shared_plans, "_shared", ())
    monkeypatch.setattr(shared_plans, "_changes", {})


@pytest.fixture(autouse=True)
def _random_numbers_of_this_test(request):
    """Whatever ran before: workers share the tests out in another way each time."""
    random = getattr(request.module, "RANDOM", None)
    if random is not None:
        random.bit_generator.state = np.random.default_rng(1).bit_generator.state


@pytest.fixture(autouse=True)
def _restored_tracer():
    yield
    assert trace_stack.top == -1
    assert not holds_tracing_lock()
    assert gc.isenabled()
    assert box_type_mappings[np.ndarray] is ArrayBox
