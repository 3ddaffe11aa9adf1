"""What tests of both packages and of the documentation share."""

import pytest

from tapesplit.cost.stored import cost_model


@pytest.fixture
def assumed_costs(tmp_path, monkeypatch):
    """Plan with the built-in cost constants, not with those of this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cost_model.cache_clear()
    yield
    cost_model.cache_clear()
