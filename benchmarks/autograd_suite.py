"""Run autograd's own test suite with every function that it checks also given to `parallel_jacobian`.

    python benchmarks/autograd_suite.py               # downloads the source distribution of autograd
    python benchmarks/autograd_suite.py --tests DIR   # takes a directory of tests that is there already
    python benchmarks/autograd_suite.py -k fft        # other options go to pytest

autograd's suite checks derivatives through `autograd.test_util.check_vjp` and `check_jvp`, also those of
derivatives (order 2). Each function and point that comes along is turned into a function of one real vector
with one real vector as value: containers are flattened, complex numbers split into parts. Its Jacobian by
`autograd.jacobian` is compared with those by `parallel_jacobian`, planned and in both plain modes.

Reported: functions checked; equal; wrong (differs by more than 1e-9 of the largest element, for solutions of
differential equations 1e-6); raised (an exception that autograd.jacobian does not raise); skipped
(autograd.jacobian itself raises). The exit status is 1 if anything was wrong or raised. Takes two minutes.
"""

import argparse
import collections
import contextlib
import importlib.metadata
import os
import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path

import autograd
import autograd.builtins as ab
import autograd.numpy as anp
import autograd.test_util
import numpy as np
import pytest

from tapesplit import parallel_jacobian

METHODS = ("auto", "tangent", "adjoint")
TOLERANCE = 1e-9
SOLVER_TOLERANCE = 1e-6
"""Of odeint, which both solve up to 1e-8 only, autograd backward in time."""


def to_real(value):
    """Return all real numbers of a value as one vector; works on traced values, too."""
    if ab.isinstance(value, (tuple, list)):
        parts = [to_real(item) for item in value]
    elif ab.isinstance(value, dict):
        parts = [to_real(value[key]) for key in sorted(value)]
    elif anp.iscomplexobj(value):
        parts = [anp.ravel(anp.real(value)), anp.ravel(anp.imag(value))]
    else:
        return anp.ravel(value)
    return anp.concatenate(parts) if parts else anp.zeros(0)


def from_real(vector, like):
    """Return a value like another one from the vector of its real numbers, and the rest of the vector."""
    if isinstance(like, (tuple, list)):
        items = []
        for item in like:
            part, vector = from_real(vector, item)
            items.append(part)
        return (ab.tuple if isinstance(like, tuple) else ab.list)(items), vector
    if isinstance(like, dict):
        items = {}
        for key in sorted(like):
            items[key], vector = from_real(vector, like[key])
        return ab.dict(items), vector
    size, shape = np.size(like), np.shape(like)
    if np.iscomplexobj(like):
        parts = [anp.reshape(vector[i * size : (i + 1) * size], shape) for i in (0, 1)]
        return parts[0] + 1j * parts[1], vector[2 * size :]
    return anp.reshape(vector[:size], shape), vector[size:]


def is_real_array(value):
    return isinstance(value, (float, np.ndarray, np.floating)) and np.asarray(value).dtype.kind == "f"


class Oracle:
    """Compares the Jacobians of each function that the suite checks, and counts."""

    def __init__(self):
        self.counts = collections.Counter()
        self.complaints = []
        self.skips = collections.Counter()
        self.test = ""

    def compare(self, fun, x):
        """Compare one function at one point; never raises."""
        with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.suppress(Unstarted):
            warnings.simplefilter("ignore")
            direct = is_real_array(x) and is_real_array(self.reference(fun, x))
            function = fun if direct else lambda v: to_real(fun(from_real(v, x)[0]))
            point = x if direct else np.asarray(to_real(x), dtype=float)
            expected = self.reference(autograd.jacobian(function), point)
            self.counts["checked"] += 1
            outcomes = [self.outcome(function, point, expected, method) for method in METHODS]
            worst = next((o for o in ("wrong", "raised") if o in outcomes), "equal")
            self.counts[worst] += 1

    def reference(self, function, x):
        """Evaluate what autograd can; what it cannot is skipped."""
        try:
            return function(x)
        except Exception as error:
            self.counts["skipped"] += 1
            self.skips[f"{type(error).__name__}: {error}".splitlines()[0][:100]] += 1
            raise Unstarted from error

    def outcome(self, function, point, expected, method):
        try:
            found = parallel_jacobian(function, method=method)(point)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what the report is about)
            self.complaints.append(f"raised   {self.test} [{method}]: {type(error).__name__}: {error}")
            return "raised"
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
        alike = found.shape == expected.shape
        tolerance = SOLVER_TOLERANCE if "odeint" in self.test else TOLERANCE
        if alike and np.allclose(found, expected, rtol=0, atol=tolerance * scale, equal_nan=True):
            return "equal"
        difference = (
            f"differs by {np.abs(found - expected).max():.1e}" if alike else f"has shape {found.shape}"
        )
        self.complaints.append(f"wrong    {self.test} [{method}]: {difference}, shape {expected.shape}")
        return "wrong"

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        self.test = item.nodeid.split("/")[-1]
        yield


class Unstarted(Exception):  # noqa: N818 (a signal, no error)
    """autograd itself has no Jacobian here."""


def watched(check, oracle):
    """Run a check of autograd.test_util after the comparison."""

    def function(f, x):
        oracle.compare(f, x)
        return check(f, x)

    return function


def download(directory):
    """Download the source distribution of the installed autograd; return its directory of tests."""
    version = importlib.metadata.version("autograd")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "autograd"]
    subprocess.run([*command, "--dest", directory, f"autograd=={version}"], check=True)  # noqa: S603 (our words)
    (archive,) = Path(directory).glob("autograd-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(directory, filter="data")
    return Path(directory) / f"autograd-{version}" / "tests"


def run(tests, options):
    """Run the suite in a directory and report; return the exit status."""
    oracle = Oracle()
    autograd.test_util.check_vjp = watched(autograd.test_util.check_vjp, oracle)
    autograd.test_util.check_jvp = watched(autograd.test_util.check_jvp, oracle)
    ours = [
        "-q",
        "--no-header",
        "-c",
        os.devnull,
        "-W",
        "ignore",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tests),
    ]
    path = ["--import-mode=importlib", "-o", f"pythonpath={tests}"]
    status = pytest.main([*ours, *path, str(tests), *options], plugins=[oracle])
    print(*oracle.complaints, sep="\n")
    print(*(f"skipped  {count:5d} x {reason}" for reason, count in oracle.skips.most_common()), sep="\n")
    columns = ("checked", "equal", "wrong", "raised", "skipped")
    print(", ".join(f"{oracle.counts[name]} {name}" for name in columns))
    print(f"autograd's suite itself ended with status {int(status)}")
    return int(bool(oracle.counts["wrong"] or oracle.counts["raised"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=Path, help="directory of autograd's tests; downloaded if left out")
    arguments, options = parser.parse_known_args()
    if arguments.tests:
        return run(arguments.tests.resolve(), options)
    with tempfile.TemporaryDirectory() as directory:
        return run(download(directory), options)


if __name__ == "__main__":
    sys.exit(main())
