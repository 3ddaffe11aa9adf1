"""The HTML report: well-formed, self-contained, small, accessible; alive in a browser where there is one."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import autograd.numpy as np
import numpy as onp
import pytest
from draw_plans import bottleneck, plan_of, records_of, scalars, two_links

from tapesplit import profile_widths, record
from tapesplit.draw import report_html

VOID = {"meta", "br", "hr", "img", "input", "link"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Checker(HTMLParser):
    """Collects elements, and the ways in which they are not nested properly."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.faults = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def checked(page):
    checker = Checker()
    checker.feed(page)
    checker.close()
    return checker


@pytest.fixture(scope="module")
def page():
    return report_html(*records_of(bottleneck, 12))


def test_elements_are_nested_and_closed(page):
    checker = checked(page)
    assert checker.faults == []
    assert checker.open == []


def test_ids_are_unique_and_links_lead_somewhere(page):
    elements = checked(page).elements
    ids = [attrs["id"] for _, attrs in elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = [attrs["href"] for tag, attrs in elements if tag == "a"]
    assert len(targets) == 11  # ten sections and the skip link
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    assert {attrs["aria-labelledby"] for _, attrs in elements if "aria-labelledby" in attrs} <= set(ids)


def test_nothing_is_loaded_from_anywhere(page):
    for _, attrs in checked(page).elements:
        assert "src" not in attrs
        assert attrs.get("href", "#").startswith("#")
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page


def test_it_can_be_read_without_seeing_the_pictures(page):
    elements = checked(page).elements
    assert ("html", {"lang": "en"}) in elements
    pictures = [attrs for tag, attrs in elements if tag == "svg"]
    assert len(pictures) == 6
    assert all(attrs["aria-label"] for attrs in pictures)
    headings = [attrs.get("scope") for tag, attrs in elements if tag == "th"]
    assert headings
    assert set(headings) == {"col", "row"}
    regions = [attrs for _, attrs in elements if attrs.get("role") == "region"]
    assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in regions)


def test_it_follows_the_preference_for_dark(page):
    assert page.count("prefers-color-scheme:dark") + page.count("prefers-color-scheme: dark") == 3
    assert "color-scheme: light dark" in page


def test_measured_times_are_there_only_with_records(page):
    assert "measured, step" in page
    assert "measured" not in report_html(two_links()).split("<script>")[0].replace("measured_", "")


def test_a_report_shows_the_last_run(tmp_path):
    plan, records = records_of(bottleneck, 12)
    assert plan.last_run.records == tuple(records)
    plan.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report_html(plan, records)
    assert "measured, step" in report_html(plan)
    assert "measured, step" not in report_html(plan, ())


def test_a_report_says_whether_the_tape_is_cut(page):
    assert "The tape is cut where few values cross;" in page
    uncut = report_html(plan_of(np.sin, 3))
    assert "The tape is not cut: it is the only link of the chain. Point at a box" in uncut
    assert "is cut where" not in uncut


def test_names_are_escaped(tmp_path):
    path = tmp_path / "report.html"
    plan_of(lambda x: np.sin(2 * x), 2).to_html(path)  # its name is <lambda>
    checker = checked(path.read_text(encoding="utf-8"))
    assert checker.faults == []
    assert "lambda" not in {tag for tag, _ in checker.elements}


def test_notebooks_show_picture_and_tables():
    checker = checked(two_links()._repr_html_())
    assert checker.faults == []
    assert {"svg", "details", "pre"} <= {tag for tag, _ in checker.elements}


def test_notebooks_show_width_profiles():
    profile = profile_widths(record(bottleneck, onp.linspace(0.1, 1.0, 12)))
    page = profile._repr_html_()
    checker = checked(page)
    assert checker.faults == checker.open == []
    pictures = [attrs["aria-label"] for tag, attrs in checker.elements if tag == "svg"]
    assert pictures == ["Width profile of the tape"]
    assert f"<pre>{profile}</pre>" in page


def test_the_report_of_a_large_tape_is_small():
    plan = plan_of(lambda x: scalars(x, 3000), 4)
    assert len(plan.structure.forms) > 60_000
    assert len(report_html(plan).encode()) < 400_000


def browse(page, tmp_path, *, script=""):
    """Run a page, with a script at its end, in headless Chromium; return the document and the console."""
    path = tmp_path / "report.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--virtual-time-budget=2000",
        "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=os.environ)  # noqa: S603
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_explanations_work_in_a_browser(page, tmp_path):
    script = """
    const marks = [...document.querySelectorAll("#split g.tip")];
    const out = [];
    const key = (name) => document.activeElement.dispatchEvent(
        new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
    marks[0].focus();  // tells nobody as long as the window of a headless browser has no focus
    marks[0].dispatchEvent(new FocusEvent("focusin", {bubbles: true}));
    out.push(tip.hidden, tip.textContent === marks[0].getAttribute("aria-label"));
    key("ArrowRight");
    out.push(document.activeElement === marks[1], tip.textContent === marks[1].dataset.tip);
    key("ArrowLeft"); key("ArrowLeft"); out.push(document.activeElement === marks.at(-1));
    out.push(document.querySelectorAll("#split g.tip[tabindex='0']").length);
    key("Escape"); out.push(tip.hidden);
    marks[2].dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
    const box = tip.getBoundingClientRect();
    out.push(tip.hidden, Math.min(box.left, box.top) >= 0);
    out.push(box.right <= innerWidth && box.bottom <= innerHeight);
    marks[2].dispatchEvent(new PointerEvent("pointerout", {bubbles: true})); out.push(tip.hidden);
    document.body.dataset.result = out.join(" ");
    """
    document, console = browse(page, tmp_path, script=script)
    assert console == []
    result = re.search(r'data-result="([^"]*)"', document)
    assert result
    assert result[1] == "false true true true true 1 true false true true true"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_the_page_is_not_wider_than_a_narrow_window(page, tmp_path):
    script = "document.body.dataset.result = document.documentElement.scrollWidth <= innerWidth;"
    document, console = browse(page, tmp_path, script=script)
    assert console == []
    assert 'data-result="true"' in document


def test_notebooks_show_tapes_as_their_listing():
    tape = record(lambda x: np.sin(2 * x), np.ones(2))
    checker = checked(tape._repr_html_())
    assert checker.faults == []
    assert "tape of" in tape._repr_html_()
    assert "<lambda>" not in tape._repr_html_()


def test_the_notebook_script_runs(tmp_path):
    script = Path(__file__).parents[2] / "examples" / "reading_a_plan.py"
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert "the makespan would be" in done.stdout
    assert checked((tmp_path / "out" / "reading_a_plan.html").read_text(encoding="utf-8")).faults == []
