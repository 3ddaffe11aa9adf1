"""The benchmarks run, check before they time, and report what they measured."""

import importlib
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py"))
QUICK = {
    "gradients": "f_wide --repeat 1",
    "machines": "f_wide --repeat 1",
    "packages": "probabilities --repeat 1",
    "planning": "100",
    "programs": "black_scholes --repeat 1",
    "separators_scaling": "100",
    "solver_bars": "20",
}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported(name, monkeypatch):
    if name == "problems_jax_scan":
        pytest.importorskip("jax")
    monkeypatch.syspath_prepend(ROOT)
    importlib.import_module(f"benchmarks.{name}")


@pytest.mark.parametrize("name", QUICK)
def test_a_small_run_ends_with_a_verdict(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", *QUICK[name].split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    assert done.returncode in {0, 1}
    assert done.stdout
    assert "Traceback" not in done.stderr, done.stderr


def test_complete_tables_are_solved_and_written(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import complete_tables as tables

    first = {q: list(islice(tables.published_chains(q), 20)) for q in (2, 3)}
    monkeypatch.setattr(tables, "chains", first.get)
    monkeypatch.setattr(tables, "OUT", tmp_path / "out")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    for q in first:
        tables.solve_all(q)
        tables.solve_all(q)  # goes on behind its last row: there is nothing left
    tables.write()
    text = (tmp_path / "docs" / "complete_tables.md").read_text("utf-8")
    assert text.startswith(tables.INTRODUCTION)
    assert "| 3 | 20 | 40 | 40 |" in text


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import measure

    return measure


def variant(measure, peer, result):
    return measure.Variant(peer, "adjoint", lambda: lambda: result)


def test_wrong_results_are_not_timed(measure):
    right = np.array([[1.0, 2.0], [3.0, 4.0]])
    wrong = right + np.array([[0.0, 0.0], [1e-8, 0.0]])
    with pytest.raises(measure.WrongResultError, match=r"ours \(adjoint\) is wrong by 2.5e-09"):
        measure.measure([variant(measure, "reference", right), variant(measure, "ours", wrong)])
    with pytest.raises(measure.WrongResultError, match="nan"):
        measure.measure([variant(measure, "reference", right), variant(measure, "ours", right * np.nan)])
    with pytest.raises(measure.WrongResultError, match="shape"):
        measure.measure([variant(measure, "reference", right), variant(measure, "ours", right[0])])


def test_every_variant_has_a_turn_in_every_round(measure):
    turns = []
    variants = [
        measure.Variant(peer, "adjoint", lambda peer=peer: lambda: turns.append(peer) or np.eye(2))
        for peer in "ab"
    ]
    timings = measure.measure(variants, repeat=3, turn=0.001)
    order = [peer for i, peer in enumerate(turns) if i == 0 or turns[i - 1] != peer]
    assert order == list("ab") * 4  # the check and three rounds
    assert all(len(timing.laters) >= 3 and timing.error == 0 for timing in timings)


def test_command_line(tmp_path):
    done = subprocess.run(  # noqa: S603 (our own script)
        [
            *(sys.executable, "-m", "benchmarks", "f_wide", "--peers", "autograd", "--repeat", "1"),
            *("--json", tmp_path / "speed.json", "--plot", tmp_path / "speed.png"),
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "f_wide" in done.stdout, done.stderr
    document = json.loads((tmp_path / "speed.json").read_text("utf-8"))
    peers = {timing["peer"]: timing for timing in document["results"]["f_wide"]}
    assert set(peers) == {"autograd", "tapesplit"}
    assert all(
        timing["later"] > 0 and timing["first"] > 0 and timing["error"] < 1e-10 for timing in peers.values()
    )
    assert done.returncode == (0 if all(bar["holds"] for bar in document["bars"]) else 1)
    assert (tmp_path / "speed.png").stat().st_size > 10_000
