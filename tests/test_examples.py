"""Every example runs at a small size and passes its own checks; the benchmarks refuse wrong results."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SIZES = {
    "nist_least_squares": (),
    "assimilation_4dvar": (20, 8),
    "implicit_burgers": (40, 20),
    "inverse_kinematics": (8, 6),
    "uncertainty_pipeline": (60,),
    "hessian": (8, 400),
    "narrow_interface": (100,),
}


def run(*arguments, cwd):
    """Run a script of ours as a user would; warnings are errors."""
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    return subprocess.run(  # noqa: S603 (our own scripts)
        command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", SIZES)
def test_example(name, tmp_path):
    done = run(ROOT / "examples" / f"{name}.py", *SIZES[name], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / f"{name}.png").stat().st_size > 10_000


def test_no_example_is_left_out():
    scripts = {
        path.stem for path in (ROOT / "examples").glob("*.py") if "__main__" in path.read_text("utf-8")
    }
    assert scripts - {"quickstart", "worst_case"} == set(SIZES)
