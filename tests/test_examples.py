"""Every example runs at a small size and passes its own checks; the benchmarks refuse wrong results."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SIZES = {
    "quickstart": (1, 10),
    "nist_least_squares": (),
    "assimilation_4dvar": (20, 8),
    "implicit_burgers": (40, 20),
    "inverse_kinematics": (8, 6),
    "reaction_kinetics": (8,),
    "uncertainty_pipeline": (60,),
    "hessian": (8, 400),
    "narrow_interface": (100,),
    "worst_case": (8,),
}

SAYS = {
    "narrow_interface": "times fewer fma than the plan of wide\n",
    "worst_case": "m = 3, bound 1/m = 0.333",
}


def test_the_benchmarks_name_the_rows_of_the_readme():
    table = (
        (ROOT / "README.md").read_text("utf-8").partition("| function | Jacobian |")[2].partition("\n\n")[0]
    )
    rows = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    names = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", names, re.MULTILINE))
    assert list(listed.values()) == rows
    problems = (ROOT / "benchmarks" / "bars.py").read_text("utf-8")
    assert list(listed) == re.findall(r'"(\w+)": \d+\.0,', problems.partition("TORCH_BARS")[0])


def test_the_benchmarks_say_what_bars_are(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.bars import Bar
    from benchmarks.report import bar_table

    head, missed, *_ = bar_table([Bar("f_wide", "autograd / ours", 2.0, 3.0)]).splitlines()
    assert head == "bars: ratios of times to reach on a quiet machine; MISSED: slower here"
    assert missed.split() == ["MISSED", "f_wide", "autograd", "/", "ours", "2.0", "of", "3.0"]


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
    assert SAYS.get(name, "") in done.stdout
    (picture,) = (tmp_path / "out").iterdir()
    assert picture.name == {"quickstart": "tape_split.svg"}.get(name, f"{name}.png")
    assert picture.stat().st_size > 9_000
    assert re.search(rf"\npicture +{re.escape(str(picture))}(: .*)?\n$", done.stdout)


def test_no_example_is_left_out():
    scripts = {
        path.stem for path in (ROOT / "examples").glob("*.py") if "__main__" in path.read_text("utf-8")
    }
    assert scripts == set(SIZES)


def test_reading_a_plan_has_headings_and_short_lines(tmp_path):
    done = run(ROOT / "examples" / "reading_a_plan.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.count("Why this plan") == lines.count("What would make it faster") == 1
    assert max(map(len, lines[:-2])) <= 100
    picture = tmp_path / "out" / "reading_a_plan.svg"
    assert picture.exists()
    assert lines[-1] == f"picture      {picture}"


def test_quickstart_sums_the_widths_up(capsys):
    example = runpy.run_path(str(ROOT / "examples" / "quickstart.py"))
    plan = example["show"](*example["make_pipeline"](2), 1)
    lines = capsys.readouterr().out.splitlines()
    assert f"separators  {len(plan.separators)}, 8 elements wide" in lines
    assert "pipeline: (200,) -> (200,), 200 × 200 Jacobian" in lines
