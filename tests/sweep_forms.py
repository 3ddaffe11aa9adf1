"""Sweeps of a form that the cost model would not have chosen."""

from tapesplit.sweeps import prediction, stages


def forced(monkeypatch, form):
    """Make all sweeps that can have a form have it."""
    if form == "systems":
        monkeypatch.setattr(
            prediction, "scalar_seconds", lambda _, work, *__: float("inf") if work.formless else 0
        )
        monkeypatch.setattr(prediction, "worth_compiling", lambda _: 0.0)
        monkeypatch.setattr(stages, "_WORTH_A_SYSTEM", -1.0)
        monkeypatch.setattr(prediction, "_WORTH_A_LOOK", -1.0)
        monkeypatch.setattr(prediction, "_WORTH_STAGES", float("inf"))
    elif form == "arrays":
        monkeypatch.setattr(prediction, "scalar_seconds", lambda *_: float("inf"))
        monkeypatch.setattr(prediction, "_WORTH_A_LOOK", float("inf"))
