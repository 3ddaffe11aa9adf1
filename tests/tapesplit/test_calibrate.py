"""Calibration: constants follow the machine, without timing anything here."""

from dataclasses import asdict

import pytest

from tapesplit import calibrate
from tapesplit.cost import CostModel


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that calibrates for a machine, given how much slower it is at each sweep."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def constants(slower):
        times = iter([sweep.seconds * slower(sweep) for sweep in calibrate._SWEEPS])

        def pretend(call):
            call()
            return next(times)

        monkeypatch.setattr(calibrate, "shortest", pretend)
        model = asdict(calibrate.calibrate())
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
