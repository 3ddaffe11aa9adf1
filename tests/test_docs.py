"""The pages of the documentation are true: their Python code runs and prints what they say.

In each page, blocks marked ``python`` are executed in order, in one namespace. A block marked ``text`` right
after one of them is what it prints; blocks marked ``console`` hold commands and what these print, a line of
dots for any lines. Lines that start with ``>>>`` are doctests. Times differ from run to run, so that only
their presence is compared.
"""

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import jcdp_core
import tapesplit

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FULL_NAME = re.compile(r"`((?:tapesplit|jcdp_core)(?:\.\w+)+)`")
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$).*\n)*)", re.MULTILINE)
MODULE = {"tapesplit": "tapesplit", "jcdp": "jcdp_core"}
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
TIME = re.compile(r"\b[\d.]+ (?:ns|µs|ms|s)\b")
RATIO = re.compile(r"\b[\d.e-]+ (?=×|times|of the largest)")


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    return [(match[1], match[2]) for match in FENCE.finditer(page.read_text(encoding="utf-8"))]


def comparable(text):
    """Blank out times, their ratios, and spaces, which depend on how long the times are."""
    lines = []
    for line in text.strip().splitlines():
        blanked = TIME.sub("?", line)
        measured = blanked != line or "difference" in line
        lines.append(" ".join((RATIO.sub("? ", blanked) if measured else line).split()))
    return lines


WITH_CODE = [page for page in PAGES if any(kind == "python" for kind, _ in blocks(page))]


WITH_COMMANDS = [page for page in PAGES if any(kind == "console" for kind, _ in blocks(page))]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_commands_print_what_the_page_says(page, tmp_path):
    """Blocks marked ``console``; they find the Python code before them in ``model.py``."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for (kind, code), (next_kind, session) in pairwise([("", ""), *blocks(page)]):
        if next_kind != "console":
            continue
        if kind == "python":
            (tmp_path / "model.py").write_text(code, encoding="utf-8")
        for command, expected in COMMAND.findall(session):
            program, *arguments = command.split()
            line = [sys.executable, "-m", MODULE[program], *arguments]
            done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603
            want, got = ("\n".join(comparable(text)) for text in (expected, done.stdout))
            assert got == want or doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS), got


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_code_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    for (kind, code), (next_kind, expected) in pairwise([*blocks(page), ("", "")]):
        if kind != "python":
            continue
        if code.startswith(">>>"):
            check_doctest(code, namespace, page)
        elif next_kind == "text":
            assert comparable(run(code, namespace)) == comparable(expected)
        else:
            assert not run(code, namespace), "the page does not show what this block prints"


def test_the_picture_of_the_readme_is_what_its_code_draws(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "autoencoder.py"  # the titles in the picture name its lines
    file.write_text(next(code for kind, code in blocks(ROOT / "README.md") if kind == "python"), "utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(file))
    drawn, shown = (folder / "tape_split.svg" for folder in (tmp_path, ROOT / "docs" / "images"))
    assert drawn.read_text(encoding="utf-8") == shown.read_text(encoding="utf-8")


def run(code, namespace):
    """Execute a block and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)  # noqa: S102 - the code of our own pages
    return printed.getvalue()


def check_doctest(code, namespace, page):
    test = doctest.DocTestParser().get_doctest(code, namespace, name(page), str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    complaints = io.StringIO()
    runner.run(test, out=complaints.write, clear_globs=False)
    namespace.update(test.globs)
    assert not runner.failures, complaints.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)")


def anchors_of(page):
    """Return the anchors of the headings of a page, as its web page has them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", text) for text in words}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=name)
def test_links_lead_to_headings(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [(page.parent / file if file else page, anchor) for file, anchor in ANCHOR.findall(text)]
    assert [anchor for file, anchor in targets if anchor not in anchors_of(file)] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_full_names_are_those_of_something(page):
    for full_name in FULL_NAME.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        pkgutil.resolve_name(full_name)


MODULES = re.compile(r"`(\w+/?)`")


@pytest.mark.parametrize("package", [tapesplit, jcdp_core])
def test_the_tables_of_modules_are_complete(package):
    """All modules and folders of a package have a row; that of a folder names all modules there, or none."""
    home, seen = ROOT / package.__name__, []
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    table = text.partition(f"| modules of {package.__name__} |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        _, modules, ideas, _ = line.split("|")
        seen += MODULES.findall(modules)
        for folder in re.findall(r"`(\w+)/`", modules):
            there, named = module_names(home / folder), set(MODULES.findall(ideas))
            assert named == there or not named & there, folder
    assert sorted(seen) == sorted(
        module_names(home) | {f"{folder.parent.name}/" for folder in home.glob("*/__init__.py")}
    )


def module_names(folder):
    return {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r": ([\w/]+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == [str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]]


def test_the_list_of_vector_rules_is_complete(tmp_path):
    """Made in a process of its own, since other tests define rules."""
    script, made = ROOT / "tests" / "vector_rules_page.py", tmp_path / "vector_rules.md"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(script), str(made)], env=environment, check=True)  # noqa: S603
    page = ROOT / "docs" / "reference" / "vector_rules.md"
    assert made.read_text("utf-8") == page.read_text("utf-8"), "run python tests/vector_rules_page.py"


def listed_names(page):
    """Return module and name of what a page of the reference documents, without modules of exceptions."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    places = [place.rpartition(".") for place in re.findall(r"^::: (\S+)$", text, re.MULTILINE)]
    return [(module, name) for module, _, name in places if name != "errors"]


def test_the_reference_lists_public_names():
    """Each where it is offered, and all that the packages export but exceptions, which have a section."""
    listed = {page: listed_names(page) for page in ("tapesplit", "plans", "jcdp_core")}
    for package in (tapesplit, jcdp_core):
        assert {module for module, _ in listed[package.__name__]} == {package.__name__}
        exported = {name for page in listed.values() for module, name in page if module == package.__name__}
        assert exported == set(package.__all__) - set(package.errors.__all__)
    for module, name in listed["plans"]:
        assert name in importlib.import_module(module).__all__, f"{module}.{name}"
