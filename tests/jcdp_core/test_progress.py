"""The progress bar: tqdm's where it is installed, silence elsewhere, the same calls in both cases."""

import io
import sys

import pytest

from jcdp_core.progress import progress_bar


def test_silent_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with progress_bar(10, 4) as progress:
        progress.update()
        progress.update(5)
    assert capsys.readouterr() == ("", "")


def test_counts_from_where_the_earlier_run_stopped(monkeypatch):
    pytest.importorskip("tqdm")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar(10, 4) as progress:
        progress.update(6)
    assert " 4/10 " in terminal.getvalue()
    assert " 10/10 " in terminal.getvalue()


def test_silent_where_nobody_watches(capsys):
    pytest.importorskip("tqdm")
    with progress_bar(10, 0) as progress:
        progress.update(10)
    assert capsys.readouterr() == ("", "")
