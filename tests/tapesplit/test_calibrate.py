"""Calibration: constants follow the machine, without timing anything here."""

import itertools
import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from tapesplit import parallel_jacobian
from tapesplit.cost.model import CostModel
from tapesplit.cost.stored import cost_model, store
from tapesplit.planning import calibrate


@pytest.fixture
def machine(monkeypatch):
    """Return a function that calibrates for a machine, given how much slower it is at each sweep."""

    def constants(slower):
        def pretend(calls):
            for call in calls:
                call()
            return [sweep.seconds * slower(sweep) for sweep in calibrate._SWEEPS]

        monkeypatch.setattr(calibrate, "_shortest", pretend)
        model = asdict(calibrate.measured_costs())
        return {name: model[name] / assumed for name, assumed in asdict(CostModel()).items()}

    return constants


@pytest.mark.parametrize("factor", [0.2, 1.0, 7.0])
def test_all_constants_follow_a_machine_that_is_slower_at_everything(machine, factor):
    assert machine(lambda sweep: factor) == pytest.approx(dict.fromkeys(asdict(CostModel()), factor))


def test_slow_products_are_told_from_all_else(machine):
    factors = machine(lambda sweep: 4.0 if sweep.function is calibrate._layers else 1.0)
    assert factors.pop("product_fma") == pytest.approx(4.0, rel=0.2)
    assert all(0.7 < factor < 1.5 for factor in factors.values())


def test_slow_memory_is_told_from_a_slow_interpreter(machine):
    factors = machine(lambda sweep: 3.0 if sweep.directions * sweep.size > 30_000 else 1.0)
    assert factors["coefficient_direction"] > 1.5 * factors["number"]
    assert factors["element"] > 1.5 * factors["step"]


def test_calls_are_timed_by_turns_and_the_shortest_run_counts(monkeypatch):
    """A load that begins or ends in between hits some runs of each, not all runs of one."""
    clock, calls = iter(range(10**6)), []
    monkeypatch.setattr(calibrate.time, "perf_counter", lambda: float(next(clock)))

    def work(name, spans):
        calls.append(name)
        for _ in range(next(spans)):
            next(clock)

    ends, begins = iter([9] * 7 + [2] * 100), iter([5] * 7 + [50] * 100)
    assert calibrate._shortest([lambda: work("a", ends), lambda: work("b", begins)]) == [3.0, 6.0]
    turns = [name for name, _ in itertools.groupby(calls)]
    assert len(turns) > 6
    assert turns == ["a", "b"] * (len(turns) // 2)


@pytest.fixture
def stored(monkeypatch, tmp_path):
    """Return a function that writes constants to the file where they are looked for."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = store(CostModel())

    def write(text):
        path.write_text(text)
        cost_model.cache_clear()

    yield write
    cost_model.cache_clear()


def test_stored_constants_are_read(stored):
    measured = CostModel(step=1e-6, product_fma=2e-11)
    stored(json.dumps(asdict(measured)))
    assert cost_model() == measured


@pytest.mark.parametrize(
    "value", [0, 0.0, -1e-9, math.nan, math.inf, pytest.param(10**400, id="huge"), "fast", None]
)
@pytest.mark.parametrize("name", ["product_fma", "step"])
def test_constants_that_are_no_positive_numbers_count_for_nothing(stored, name, value):
    stored(json.dumps(asdict(CostModel(loop=1.0)) | {name: value}))
    assert cost_model() == CostModel()
    np.testing.assert_array_equal(parallel_jacobian(lambda x: x @ np.eye(3))(np.ones(3)), np.eye(3))


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", '{"step": 1e-6}'])
def test_a_broken_file_counts_for_nothing(stored, text):
    stored(text)
    assert cost_model() == CostModel()


@pytest.fixture
def homeless(monkeypatch):
    """Take the home directory away, as in a container for a user without an entry in its list of users."""

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    cost_model.cache_clear()
    yield
    cost_model.cache_clear()


@pytest.mark.usefixtures("homeless")
def test_without_a_home_the_assumed_constants_count():
    assert cost_model() == CostModel()
    np.testing.assert_array_equal(parallel_jacobian(lambda x: 2.0 * x)(np.ones(2)), 2.0 * np.eye(2))


@pytest.mark.usefixtures("homeless")
def test_without_a_home_calibration_says_what_is_missing():
    with pytest.raises(OSError, match="this user has no home directory"):
        store(CostModel())
