"""What tests of both packages and of the documentation share."""

import os
import tempfile
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Plan with the built-in cost constants, not with those that this machine has been calibrated to."""
    usual = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    os.environ.setdefault("MPLCONFIGDIR", str(Path(usual, "matplotlib")))  # fonts take long to find
    empty = tempfile.TemporaryDirectory()
    config.add_cleanup(empty.cleanup)
    os.environ["XDG_CACHE_HOME"] = empty.name
