"""The report on a plan: one HTML file that needs nothing else, and its short form for notebooks."""

import os
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Final

from jcdp_core import Mode
from tapesplit.cuts.width_profile import WidthProfile, width_profile
from tapesplit.draw.advise import advice
from tapesplit.draw.bars import comparison_scene
from tapesplit.draw.endings import REPORTS, check_file
from tapesplit.draw.explain import decisions
from tapesplit.draw.gantt import check_records, gantt_scene
from tapesplit.draw.numbers import bytes_text, count, ratio, seconds_text, shape_text, shorten
from tapesplit.draw.profile import profile_scene
from tapesplit.draw.rows import STEP_HEAD, cheaper_mode, link_rows, shared_seeds, step_rows
from tapesplit.draw.scene import INK, STYLES, Scene
from tapesplit.draw.split import split_scene
from tapesplit.draw.svg import scene_css, to_svg
from tapesplit.draw.text import describe
from tapesplit.draw.trees import bracketing_scene, precedence_scene
from tapesplit.planning.plan import JacobianPlan
from tapesplit.planning.records import TaskRecord

__all__ = ["notebook_html", "profile_html", "report_html", "write_report"]

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The page may load nothing at all."""

_CUT: Final = "The tape is cut where few values cross; what lies between two cuts is a link of the chain."
_UNCUT: Final = "The tape is not cut: it is the only link of the chain."
_MOVE: Final = "Point at a box, or move through the picture with the arrow keys."
_WIDTHS: Final = (
    "The tape from inputs to outputs, in shares of about equal edges, or of one operation that has more. A "
    "pale bar far above its blue one is a place where another order of the operations would be narrower."
)
_PLANNED: Final = "Each bar is a step."
_MEASURED: Final = (
    "Predicted and measured tasks on the same scale of time. A task is a step, or several steps that are one "
    "sweep. Gaps are time that the coordinator takes, or waits for another machine."
)
_BRACKETS: Final = "Each step spans the links whose Jacobian it yields; the last one spans them all."
_TREE: Final = (
    "An arrow leads from each step to the one that uses its result. Steps without a path between them can "
    "run at the same time."
)


def write_report(
    plan: JacobianPlan, path: str | os.PathLike[str], records: Sequence[TaskRecord] | None = None
) -> None:
    """Write a report on a plan to a file, see `JacobianPlan.to_html`."""
    check_file(path, REPORTS)
    Path(path).write_text(report_html(plan, records), encoding="utf-8")


def report_html(plan: JacobianPlan, records: Sequence[TaskRecord] | None = None) -> str:
    """Return the report on a plan as HTML.

    Parameters
    ----------
    plan
        The plan.
    records
        Measured tasks; by default those of the last run that used this plan.

    Returns
    -------
    str
        A complete document.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> page = report_html(parallel_jacobian(lambda x: np.sin(x) * x, machines=1).plan(np.ones(3)))
    >>> page.startswith("<!DOCTYPE html>"), len(page) < 100_000
    (True, True)
    """
    if records is None:
        records = plan.last_run.records
    else:
        check_records(plan, records)
    sections = _sections(plan, records)
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in sections)
    bodies = "".join(
        f'<section id="{name}" aria-labelledby="h-{name}"><h2 id="h-{name}">{title}</h2>{body}</section>\n'
        for name, title, body in sections
    )
    name = escape(plan.name)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>Jacobian of {name}</title>\n"
        f"<style>{scene_css()}{_page_css()}\n{_resource('report.css')}</style>\n</head>\n"
        f'<body>\n<a class="skip" href="#main">Skip to the report</a>\n<header><h1>Jacobian of {name}</h1>'
        f'{_summary(plan, records)}</header>\n<nav aria-label="Sections"><ul>{links}</ul></nav>\n'
        f'<main id="main">\n{bodies}</main>\n<footer>Written by tapesplit. 1.2e7 is 12 million.</footer>\n'
        '<div id="tip" role="tooltip" hidden></div>\n'
        f"<script>{_resource('report.js')}</script>\n</body>\n</html>\n"
    )


def notebook_html(plan: JacobianPlan) -> str:
    """Return a plan for a notebook cell: one line, the split tape, the tables on demand."""
    line = f"<p>{escape(describe(plan, 'line'))}</p>"
    return _cell(line, split_scene(plan), "Chain, steps and totals", describe(plan))


def profile_html(profile: WidthProfile) -> str:
    """Return a width profile for a notebook cell: the picture, the numbers on demand."""
    return _cell("", profile_scene(profile), "Numbers", str(profile))


def _cell(head: str, scene: Scene, title: str, text: str) -> str:
    """Write a picture and a text that is folded away."""
    return (
        f'<div>{head}<div style="overflow-x:auto">{to_svg(scene)}</div>'
        f"<details><summary>{title}</summary><pre>{escape(text)}</pre></details></div>"
    )


def _resource(name: str) -> str:
    """Read a file of this package."""
    return files("tapesplit.draw").joinpath(name).read_text(encoding="utf-8")


def _summary(plan: JacobianPlan, records: Sequence[TaskRecord]) -> str:
    """Say the most important in a sentence and some numbers."""
    output, *inputs = plan.shapes
    mode, cost = cheaper_mode(plan)
    shared = shared_seeds(plan)
    links = "was not cut" if len(plan.chain) == 1 else f"was cut into {len(plan.chain)} links"
    several = plan.machines > 1
    time = f", in the time of {count(plan.makespan)} on {plan.machines} machines" if several else ""
    sentence = (
        f"The tape of {plan.name} {links}. Its Jacobian takes {count(plan.fma)} multiply-adds (fma){time}; "
        f"plain {mode} mode takes {count(cost)}."
    )
    facts = [
        ("maps", f"{', '.join(map(shape_text, inputs))} → {shape_text(output)}"),
        ("operations", count(plan.graph.size - plan.graph.inputs)),
        ("links", str(len(plan.chain))),
        ("work", f"{count(plan.fma)} fma"),
        *([("makespan", f"{count(plan.makespan)} fma")] if several else []),
        (f"all {mode} ÷ work", ratio(cost / plan.fma)),
        *([("compressed", " for ".join(shared))] if shared else []),
        ("peak memory beyond the tape", bytes_text(plan.peak_bytes)),
    ]
    if plan.memory_limit:
        facts.append(("limit to the memory of a sweep", bytes_text(plan.memory_limit)))
    if records:
        facts.append(("predicted", seconds_text(plan.seconds)))
        facts.append(("measured", seconds_text(max(record.finish for record in records))))
    cards = [f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts]
    return f"{_lead(sentence)}<dl>{''.join(cards)}</dl>"


def _sections(plan: JacobianPlan, records: Sequence[TaskRecord]) -> list[tuple[str, str, str]]:
    """Return name, title and body of each section."""
    profile = width_profile(plan.graph, plan.separators)
    split = f"{_CUT if plan.separators else _UNCUT} {_MOVE}"
    return [
        ("split", "Split tape", _lead(split) + _picture(split_scene(plan))),
        ("widths", "Width profile", _lead(_WIDTHS) + _picture(profile_scene(profile))),
        ("comparison", "Plan and plain modes", _picture(comparison_scene(plan))),
        ("chain", "Chain", _chain_table(plan)),
        ("steps", "Steps", _steps_table(plan)),
        (
            "gantt",
            "Machines over time",
            _lead(_MEASURED if records else _PLANNED) + _legend() + _picture(gantt_scene(plan, records)),
        ),
        ("bracketing", "Bracketing", _lead(_BRACKETS) + _legend() + _picture(bracketing_scene(plan))),
        ("tree", "Elimination in-tree", _lead(_TREE) + _legend() + _picture(precedence_scene(plan))),
        ("why", "Why this plan", _list(decisions(plan))),
        ("advice", "What would make it faster", _list(advice(plan))),
    ]


def _lead(text: str) -> str:
    """Write a paragraph."""
    return f"<p>{escape(text)}</p>"


def _list(sentences: Iterable[str]) -> str:
    """Write a list."""
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _picture(scene: Scene) -> str:
    """Write a picture that scrolls where it is wider than the page."""
    return _scrolling(scene.title, to_svg(scene, standalone=False))


def _scrolling(name: str, content: str) -> str:
    """Wrap what may be wider than the page; it is reached by keyboard, as it may have to be scrolled."""
    return f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0">{content}</div>'


def _legend() -> str:
    """Name the colors of the modes."""
    names = [mode.name.lower() for mode in Mode]
    keys = [f'<span class="key {name}">{name}</span>' for name in names]
    return f"<p>{''.join(keys)}</p>"


def _page_css() -> str:
    """Give the page and its legends the colors that the pictures have, light and dark."""
    modes = {mode.name.lower(): STYLES[mode.name.lower()] for mode in Mode}
    inks = [";".join(f"--{name}:{colors[i]}" for name, colors in INK.items()) for i in (0, 1)]
    light = "".join(f".key.{name}{{background:{style.fill}}}" for name, style in modes.items())
    dark = "".join(f".key.{name}{{background:{style.dark_fill}}}" for name, style in modes.items())
    return f":root{{{inks[0]}}}{light}@media (prefers-color-scheme:dark){{:root{{{inks[1]}}}{dark}}}"


def _chain_table(plan: JacobianPlan) -> str:
    """Write the table of links."""
    rows = [
        (str(row.number), *map(count, (row.n, row.m, row.edges)), row.sweep, shorten(row.operations, 200))
        for row in link_rows(plan)
    ]
    head = ("link", "inputs n", "outputs m", "|E|", "swept", "operations")
    return _table("Links of the Jacobian chain, from inputs to outputs", head, rows, text={4, 5})


def _steps_table(plan: JacobianPlan) -> str:
    """Write the table of steps."""
    rows = [row.cells for row in step_rows(plan)]
    return _table("Elimination sequence with its schedule, times in fma", STEP_HEAD, rows, text={1})


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], text: set[int]) -> str:
    """Write a table; the columns in `text` are left-aligned."""
    kinds = [' class="text"' if column in text else "" for column in range(len(head))]
    cells = zip(head, kinds, strict=True)
    titles = "".join(f'<th scope="col"{kind}>{escape(title)}</th>' for title, kind in cells)
    body = "".join(_table_row(row, kinds) for row in rows)
    return _scrolling(
        caption,
        f"<table><caption>{escape(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>",
    )


def _table_row(row: Sequence[str], kinds: Sequence[str]) -> str:
    """Write one row; its first cell is its heading."""
    cells = zip(row[1:], kinds[1:], strict=True)
    data = "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in cells)
    return f'<tr><th scope="row">{escape(row[0])}</th>{data}</tr>'
