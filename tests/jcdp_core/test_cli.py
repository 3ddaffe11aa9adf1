"""The commands: what they print and write, and that errors are messages."""

import importlib
import io
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import jcdp_core
from jcdp_core import cli
from jcdp_core.cli import main, main_batch, main_stats
from jcdp_core.comparison import compare
from jcdp_core.config import Config
from jcdp_core.errors import ConfigError
from jcdp_core.files import check_file
from jcdp_core.operation import Operation
from jcdp_core.results import columns

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
PROGRAMS = {main: "jcdp", main_batch: "jcdp-batch", main_stats: "jcdp-stats"}
EXAMPLE = "length 6\nsize_range 5 500\ndag_size_range 1000 100000\nseed 2457497973\n"
ONE_MACHINE = [
    ("ACC TAN (4 5)", 10228680),
    ("ELI TAN (4 5 6)", 10364220),
    ("ACC ADJ (3 4)", 2985336),
    ("ELI ADJ (1 3 4)", 16636212),
    ("ELI MUL (1 4 6)", 5941512),
    ("ELI ADJ (0 1 6)", 4821516),
]


@pytest.fixture
def config(tmp_path):
    """Return a function that writes a configuration of the worked example and returns its path."""

    def write(more=""):
        path = tmp_path / "example.in"
        path.write_text(EXAMPLE + more, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_prints_settings_costs_and_every_solver(config, capsys):
    assert main([config("available_threads 3\n"), "--flavour", "libc++"]) == 0
    text = capsys.readouterr().out
    assert "  seed 2457497973\n" in text
    assert "  sizes 268 173 190 416 108 264 318\n" in text
    assert "Tangent cost: 103854824\nAdjoint cost: 123230724\n" in text
    table = text.split("Solvers\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[:4] for line in table[1:]] == [
        [name, "29797092", "1.000", "optimal"] for name in ("DP", "DP_List", "DP_BnB", "BnB_List", "BnB_BnB")
    ]
    for name in ("DP", "DP_List", "DP_BnB", "BnB_List", "BnB_BnB"):
        section = text.split(f"\n{name} (")[1].split("\n\n")[0]
        assert "makespan 29797092 fma (optimal)" in section
        assert "lower bound 29797092" in section
    steps = [
        line.split("fma")[0].split() for line in text.split("\nDP (")[1].split("\n\n")[0].splitlines()[3:]
    ]
    assert [" ".join(step[1:-1]) for step in steps] == [
        "ACC TAN (4 5)",
        "ELI TAN (4 5 6)",
        "ACC ADJ (3 4)",
        "ELI ADJ (2 3 4)",
        "ACC TAN (1 2)",
        "ELI MUL (1 2 4)",
        "ELI ADJ (0 1 4)",
        "ELI MUL (0 4 6)",
    ]
    pools = [line.split("[")[1].split("]")[0] for line in text.splitlines() if "MUL (0 4 6)" in line]
    assert pools[0] == "1,3"


def test_json_has_the_documented_keys_and_exact_integers(config, capsys):
    assert main([config("amount 2\ntangent_factor_range 1 2\n"), "--flavour", "libc++", "--json"]) == 0
    printed = capsys.readouterr().out
    document = json.loads(printed)
    assert f'"sizes": {json.dumps(document["chains"][0]["sizes"])},' in printed  # in one line
    assert set(document) == {"settings", "chains"}
    assert set(document["settings"]) == {key.name for key in fields(Config)} | {"flavour"}
    assert len(document["chains"]) == 2
    chain = document["chains"][0]
    assert chain["length"] == 6
    assert chain["adjoint_cost"] == 123230724
    assert chain["tangent_cost"] == 268 * sum(chain["tangent_costs"]) > 103854824


def test_json_steps_of_the_worked_example(config, capsys):
    assert main([config(), "--flavour", "libc++", "--json"]) == 0
    (chain,) = json.loads(capsys.readouterr().out)["chains"]
    solution = chain["solutions"]["DP"]
    assert (solution["makespan"], solution["lower_bound"], solution["optimal"]) == (50977476, 50977476, True)
    assert (solution["method"], solution["machines"], solution["nodes"]) == ("dp", 1, None)
    assert [(step["operation"], step["cost"]) for step in solution["steps"]] == ONE_MACHINE
    assert [step["successor"] for step in solution["steps"]] == [2, 5, 4, 5, 6, None]
    assert {(step["machine"], *step["pool"]) for step in solution["steps"]} == {(1, 1)}
    assert solution["steps"][-1]["finish"] == 50977476
    assert all(str(Operation.parse(step["operation"])) == step["operation"] for step in solution["steps"])


@pytest.mark.parametrize("option", ["--json", None])
def test_an_interrupt_leaves_the_chains_so_far(config, capsys, monkeypatch, option):
    solved = []

    def interrupted(chain, *settings):
        if len(solved) == 2:
            interrupt = KeyboardInterrupt()
            interrupt.add_note("while solving: the best makespan so far is 7")
            raise interrupt
        solved.append(chain)
        return compare(chain, *settings)

    monkeypatch.setattr(cli, "compare", interrupted)
    assert main([config("amount 5\n"), *filter(None, [option])]) == 130
    out, err = capsys.readouterr()
    assert err == "jcdp: interrupted; while solving: the best makespan so far is 7\n"
    if option:
        assert [chain["sizes"] for chain in json.loads(out)["chains"]] == [
            list(chain.sizes) for chain in solved
        ]
    else:
        assert out.count("BnB_BnB (") == 2


def test_unlimited_machines(config, capsys):
    assert main([config("available_threads 0\n"), "--flavour", "libc++", "--json"]) == 0
    (chain,) = json.loads(capsys.readouterr().out)["chains"]
    assert chain["solutions"]["DP"]["machines"] is None
    assert {solution["makespan"] for solution in chain["solutions"].values()} == {29797092}


def test_writes_dot_and_gantt(config, tmp_path):
    dot, gantt = tmp_path / "tree.dot", tmp_path / "gantt.txt"
    assert main([config(), "--flavour", "libc++", "--dot", str(dot), "--gantt", str(gantt)]) == 0
    assert dot.read_text(encoding="utf-8").count(" -> ") == 5
    assert gantt.read_text(encoding="utf-8").startswith("1 |[1 ACC TAN")


def test_draws_pictures(config, tmp_path):
    pytest.importorskip("matplotlib")
    dot, gantt = tmp_path / "tree.svg", tmp_path / "gantt.png"
    assert main([config(), "--dot", str(dot), "--gantt", str(gantt)]) == 0
    assert "<svg" in dot.read_text(encoding="utf-8")
    assert gantt.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("command", "arguments", "instead"),
    [
        (main, ["--gantt", "g.png"], "let its name end in .txt, which needs nothing"),
        (main, ["--dot", "t.SVG"], "let its name end in .dot or .gv, which needs nothing"),
        (main_stats, ["-o", "b.pdf"], "leave it out"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_missing_matplotlib_is_told_before_there_is_work_to_lose(
    capsys, monkeypatch, command, arguments, instead
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert command(["absent", *arguments]) == 1
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors == (
        f"{PROGRAMS[command]}: error: drawing {arguments[-1]!r} needs matplotlib; "
        f"install it with: pip install 'tapesplit[plot]', or {instead}\n"
    )


def test_text_is_drawn_without_matplotlib(config, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    dot, gantt = tmp_path / "tree.gv", tmp_path / "gantt.txt"
    assert main([config(), "--dot", str(dot), "--gantt", str(gantt)]) == 0
    assert dot.exists()
    assert gantt.exists()


@pytest.mark.parametrize("command", [main, main_batch])
def test_help_lists_every_key(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        command(["--help"])
    text = capsys.readouterr().out
    assert all(f"\n  {key.name} " in text for key in fields(Config))


@pytest.mark.usefixtures("folder")
def test_batch_solves_for_all_machine_counts_and_says_so(capsys):
    rows = []
    for machines in (0, 1, 2):
        config = Config(length=(3,), amount=2, size_range=(5, 50), available_threads=machines)
        Path("batch.in").write_text(str(config), encoding="utf-8")
        assert main_batch(["batch.in", "-o", f"{machines}_"]) == 0
        rows.append(Path(f"{machines}_3.csv").read_text(encoding="utf-8"))
    assert rows[0] == rows[1] == rows[2]
    capsys.readouterr()
    with pytest.raises(SystemExit, match="0"):
        main_batch(["--help"])
    help_text = capsys.readouterr().out
    assert "each machine count t from 1 to the length (available_threads has no effect)" in help_text


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (main, ["absent.in"], "absent.in: No such file or directory\n"),
        (main, ["wrong.in"], "wrong.in:2: unknown key 'sead'; did you mean 'seed'?"),
        (main, ["many.in", "--dot", "tree.dot"], "many.in: --dot and --gantt draw one chain"),
        (
            main,
            ["one.in", "--gantt", "no/g.txt"],
            "cannot write 'no/g.txt': there is no folder 'no'; make it",
        ),
        (main, ["one.in", "--dot", "no/t.svg"], "cannot write 'no/t.svg': there is no folder 'no'; make it"),
        (
            main,
            ["one.in", "--dot", "t.t"],
            "cannot write 't.t': the name ends in '.t'; let it end in .dot, .gv, .pdf, .png or .svg",
        ),
        (
            main,
            ["one.in", "--gantt", "chart"],
            "cannot write 'chart': the name has no ending; let it end in .txt, .pdf, .png or .svg\n",
        ),
        (
            main,
            ["one.in", "--dot", "folder.dot"],
            "cannot write 'folder.dot': it is a folder, or you have",
        ),
        (main_batch, ["wrong.in"], "wrong.in:2: unknown key 'sead'; did you mean 'seed'?"),
        (main_batch, ["one.in", "-o", "no/r"], "cannot write 'no/r': there is no folder 'no'; make it"),
        (main_batch, ["one.in", "--jobs", "0"], "jobs is 0; give the number of worker processes"),
        (main_stats, ["one.in"], "one.in:1: not the header of a results file: column 1 is"),
        (
            main_stats,
            ["a.csv", "./a.csv"],
            "./a.csv is given twice, so that its chains would count",
        ),
        (main_stats, ["absent.csv"], "absent.csv: No such file or directory\n"),
        (
            main_stats,
            ["absent.csv", "-o", "b.txt"],
            "cannot write 'b.txt': the name ends in '.txt'; let it end in .pdf, .png or .svg\n",
        ),
        (
            main_stats,
            ["absent.csv", "-o", "no/b.png"],
            "cannot write 'no/b.png': there is no folder",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors_are_one_line(capsys, command, arguments, message):
    Path("one.in").write_text("length 2\n", encoding="utf-8")
    Path("many.in").write_text("length 2,3\n", encoding="utf-8")
    Path("wrong.in").write_text("length 2\nsead 4\n", encoding="utf-8")
    Path("folder.dot").mkdir()
    assert command(arguments) == 1
    out, errors = capsys.readouterr()
    assert out == ""  # nothing is lost
    assert errors.startswith(f"{PROGRAMS[command]}: error: {message}")
    assert errors.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_batch_then_stats(capsys):
    config = Config(length=(2, 3), amount=4, size_range=(5, 50), dag_size_range=(1000, 10000), seed=4711)
    Path("batch.in").write_text(str(config), encoding="utf-8")
    assert main_batch(["batch.in"]) == 0
    assert capsys.readouterr().out.split() == ["results_length_2.csv", "results_length_3.csv"]
    assert main_batch(["batch.in"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "results_length_2.csv: complete already",
        "results_length_3.csv: complete already",
    ]
    assert main_stats(["results_length_2.csv", "results_length_3.csv"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Average of C = optimum/DP (all chains, every optimum proved)\n")
    assert text.count("every optimum proved") == 4


def test_stats_keeps_finished_and_all_chains_apart(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    files = [str(DATA / f"results_length_{length}.head150.csv") for length in (3, 6)]
    assert main_stats([*files, "-o", str(tmp_path / "boxes.pdf")]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if "(" in line]
    assert [title.split("(")[1] for title in titles] == ["finished solves only; 2 left out)"] * 4 + [
        "all chains; 2 solves not proved: C is an upper bound)"
    ] * 4
    assert (tmp_path / "boxes.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(("name", "line"), [("csv", "6,.938,.963,.993,.999,1"), ("latex", r"\begin{table}")])
def test_stats_formats(capsys, name, line):
    assert main_stats([str(DATA / "results_length_6.head150.csv"), "--format", name]) == 0
    assert line in capsys.readouterr().out.splitlines()


def test_a_reader_that_leaves_early_is_no_error(config):
    code = "import sys; from jcdp_core.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, config("amount 50\n")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # noqa: S603 - our own command
        process.stdout.close()
        assert process.stderr.read() == b""


def test_pictures_are_drawn_for_a_reader_that_leaves_early(tmp_path):
    picture = tmp_path / "boxes.svg"
    code = "import sys; from jcdp_core.cli import main_stats; sys.exit(main_stats())"
    results = str(DATA / "results_length_3.head150.csv")
    command = [sys.executable, "-c", code, results, "-o", str(picture)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own command
        process.stdout.close()
    assert process.returncode == 1
    assert picture.exists()


def test_a_closed_standard_output_is_no_error(config, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)  # what Python makes of `jcdp ... >&-`
    assert main([config()]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("folder")
def test_file_names_that_cannot_be_encoded_are_printed_as_far_as_they_can(config, monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))
    assert main_batch([config(), "-o", "zwölf_"]) == 0
    assert shown.getvalue() == b"zw?lf_6.csv" + os.linesep.encode()


@pytest.mark.usefixtures("folder")
def test_a_batch_that_goes_on_says_which_files_were_complete(capsys):
    config = Config(length=(2, 3), amount=4, size_range=(5, 50), dag_size_range=(1000, 10000), seed=4711)
    Path("batch.in").write_text(str(config), encoding="utf-8")
    Path("folder").mkdir()
    assert main_batch(["batch.in", "-o", "folder/"]) == 0
    rows = Path("folder/3.csv").read_text(encoding="utf-8")
    Path("folder/3.csv").write_text(rows[:-2], encoding="utf-8")
    capsys.readouterr()
    assert main_batch(["batch.in", "-o", "folder/"]) == 0
    assert capsys.readouterr().out.splitlines() == ["folder/2.csv: complete already", "folder/3.csv"]
    assert Path("folder/3.csv").read_text(encoding="utf-8") == rows


def test_chains_of_one_link_have_no_statistics(tmp_path, capsys):
    path = tmp_path / "results_length_1.csv"
    path.write_text(",".join(columns(1)) + "\ntrue,1,1,1,1\n", encoding="utf-8")
    assert main_stats([str(path)]) == 1
    assert capsys.readouterr().err == (
        "jcdp-stats: error: all chains have one link, which no solver can share among machines; "
        "give files of longer chains\n"
    )
    assert main_stats([str(path), str(DATA / "results_length_3.head150.csv")]) == 0


@pytest.mark.parametrize(
    ("command", "name"), [(main, "jcdp"), (main_batch, "jcdp-batch"), (main_stats, "jcdp-stats")]
)
def test_version(command, name, capsys):
    with pytest.raises(SystemExit, match="0"):
        command(["--version"])
    assert capsys.readouterr().out == f"{name} {jcdp_core.__version__}\n"


def test_runs_as_a_module(config):
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "jcdp_core", config(), "--flavour", "libc++"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Tangent cost: 103854824\n" in done.stdout


def test_entry_points_exist():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    for target in (target for name, target in scripts.items() if name.startswith("jcdp")):
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_a_file_that_exists_is_written_whatever_its_folder_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path).is_file())
    (tmp_path / "old.svg").touch()
    check_file(str(tmp_path / "old.svg"), [".svg"])
    with pytest.raises(ConfigError, match="you have no permission in the folder"):
        check_file(str(tmp_path / "new.svg"), [".svg"])
