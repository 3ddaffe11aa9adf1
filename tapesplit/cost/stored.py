"""The cost constants of this machine: measured ones are kept in the user's cache directory."""

import json
import math
import os
import platform
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path

import numpy as np

from tapesplit.cost.model import CostModel

__all__ = ["cost_model", "store"]


@cache
def cost_model() -> CostModel:
    """Return the constants of this machine: measured ones if there are, else those of a server core of 2025.

    They are read once for each process from the file that ``tapesplit calibrate`` writes. A file that cannot
    be read, or that holds anything but positive numbers, is ignored.
    """
    try:
        stored = json.loads(_path().read_text())
        constants = {field.name: float(stored[field.name]) for field in fields(CostModel)}
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return CostModel()
    return CostModel(**constants) if all(0.0 < c < math.inf for c in constants.values()) else CostModel()


def store(model: CostModel) -> Path:
    """Keep measured constants for later processes; return the file."""
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(model), indent=1))
    cost_model.cache_clear()
    return path


def _path() -> Path:
    """Name of the file with this machine's constants; OSError if there is no place for it."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:  # as in a container, for a user that its system does not know
        raise FileNotFoundError("this user has no home directory") from error
    machine = f"{platform.node()}-{platform.machine()}-numpy{np.__version__}"
    return Path(base) / "tapesplit" / f"cost-{machine}.json"
