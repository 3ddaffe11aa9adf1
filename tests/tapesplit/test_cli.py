"""The command line: what it prints, writes and refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapesplit
from tapesplit import parallel_jacobian
from tapesplit.cli import main
from tapesplit.loading import load_inputs

MODEL = """
import autograd.numpy as np
import numpy as onp
from neighbor import SCALE
from tapesplit import parallel_jacobian

x0 = np.linspace(0.0, 1.0, 4)

def f(x):
    return SCALE * np.sin(x) * x

def two(x, y):
    return x * y

def broken(x):
    return x + np.ones(7)

def plain(x):
    y = onp.zeros(7)
    y[0] = x[0]
    return y

def named(x, *, n):
    return n * x

def steps(x, n):
    for _ in range(n):
        x = np.sin(x)
    return x

def constant(x):
    return np.ones(3)

def empty(x):
    return x[:0]

class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def times(self, x):
        return self.scale * np.sin(x)

    @parallel_jacobian(argnum=1, machines=1, has_aux=True)
    def decorated(self, x, n):
        return self.scale * np.sin(x) ** n, n

scaled = Scaled(3.0)

@parallel_jacobian(argnum=-1, method="adjoint")
def second(x, y):
    return x * np.sum(y)
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "neighbor.py").write_text("SCALE = 2.0\n")
    (tmp_path / "model_of_test.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return "model_of_test.py"


def test_explain_prints_the_plan(model, capsys):
    assert main(["explain", f"{model}:f", "--input", "x0", "--machines", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("f: (4,) -> (4,), 4 × 4 Jacobian\n")
    assert "Why this plan" in out


def test_explain_in_one_line(model, capsys):
    assert main(["explain", f"{model}:f", "--input", "x0", "--level", "line"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_explain_writes_files(model, tmp_path, capsys):
    assert main(["explain", f"{model}:f", "--input", "x0", "--html", "r.html", "--draw", "s.svg"]) == 0
    assert "measured, step 1" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert (tmp_path / "s.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "wrote r.html" in capsys.readouterr().out


def test_inputs_are_files_expressions_and_names(model, tmp_path, capsys):
    np.save(tmp_path / "y.npy", np.arange(4))
    assert main(["explain", f"{model}:two", "--input", "x0", "--input", "y.npy", "--level", "line"]) == 0
    assert capsys.readouterr().out.startswith("two: (4,), (4,) -> (4,)")


def test_inputs_to_differentiate_by_become_floats_and_others_stay(model, capsys):
    array, number, name = load_inputs(["np.arange(2)", "2", "'sin'"], {}, differentiated={0})
    assert array.dtype == float
    assert (type(number), name) == (int, "sin")
    words = [f"{model}:steps", "--input", "x0", "--input", "3", "--argnum", "0"]
    assert main(["explain", *words, "--level", "line"]) == 0
    assert capsys.readouterr().out.startswith("steps: (4,) -> (4,)")
    assert main(["bench", *words]) == 0
    assert capsys.readouterr().err == ""
    assert main(["bench", *words[:-2]]) == 1
    assert "; all inputs are differentiated by: --argnum N keeps" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["explain", "bench"])
def test_an_unknown_method_is_refused_before_the_file_runs(command, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([command, "none.py:f", "--input", "x0", "--method", "magic"])
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"tapesplit {command}: error: argument --method: invalid choice: 'magic'")


def test_explain_takes_arguments_and_a_method(model, capsys):
    words = ["explain", f"{model}:two", "--input", "x0", "--input", "2 * x0"]
    assert main([*words, "--argnum", "1", "--method", "adjoint"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "two: (4,) -> (4,), 4 × 4 Jacobian"
    assert any("adjoint × 4" in line for line in out)
    assert main([*words, "--argnum", "1", "--argnum", "0"]) == 0
    assert capsys.readouterr().out.startswith("two: (4,), (4,) -> (4,), 4 × 8 Jacobian\n")


def test_a_method_of_an_object_is_named_by_dots(model, capsys):
    assert main(["explain", f"{model}:scaled.times", "--input", "x0", "--level", "line"]) == 0
    assert capsys.readouterr().out.startswith("Scaled.times: (4,) -> (4,)")


def test_of_a_decorated_function_its_own_jacobian_is_explained(model, capsys):
    words = [f"{model}:second", "--input", "x0", "--input", "np.ones(3)"]
    assert main(["explain", *words]) == 0
    out = capsys.readouterr().out
    assert out.startswith("second: (3,) -> (4,), 4 × 3 Jacobian\n")
    assert "method 'adjoint' was asked for" in out
    assert main(["explain", *words, "--argnum", "0", "--method", "tangent"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("second: (4,) -> (4,), 4 × 4 Jacobian\n")
    assert "method 'tangent' was asked for" in out
    words = [f"{model}:scaled.decorated", "--input", "x0", "--input", "2"]
    assert main(["explain", *words]) == 0
    assert capsys.readouterr().out.startswith("Scaled.decorated: (4,) -> (4,), 4 × 4 Jacobian\n")
    assert main(["bench", *words]) == 0
    assert "difference" in capsys.readouterr().out
    assert main(["bench", words[0], "--input", "x0", "--input", "np.ones(7)"]) == 1
    assert "all inputs" not in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"tapesplit {tapesplit.__version__}\n"


def test_runs_as_a_module(model):
    command = [sys.executable, "-m", "tapesplit", "explain", f"{model}:f", "--input", "x0", "--level", "line"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    assert done.stdout.startswith("f: (4,) -> (4,)")


def test_a_file_does_not_replace_the_module_of_its_name(model, tmp_path, capsys):
    (tmp_path / "json.py").write_text(MODEL)
    assert main(["explain", "json.py:f", "--input", "x0", "--level", "line"]) == 0
    assert capsys.readouterr().out.startswith("f: (4,) -> (4,)")
    assert sys.modules["json"] is json


def test_bench_compares(model, capsys):
    assert main(["bench", f"{model}:f", "--input", "x0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["difference", "autograd.jacobian", "tapesplit", "first"]


def test_bench_takes_arguments_and_a_method(model, capsys, monkeypatch):
    seen = []

    def recorded(fun, argnum, **options):
        seen.append((argnum, options))
        return parallel_jacobian(fun, argnum, **options)

    monkeypatch.setattr("tapesplit.bench.parallel_jacobian", recorded)
    words = ["bench", f"{model}:two", "--input", "x0", "--input", "2 * x0"]
    assert main([*words, "--argnum", "1", "--method", "adjoint", "--machines", "1"]) == 0
    assert seen == [((1,), {"machines": 1, "method": "adjoint"})]
    assert "difference         0.0e+00" in capsys.readouterr().out


def test_bench_does_not_time_a_wrong_result(model, capsys, monkeypatch):
    monkeypatch.setattr("autograd.jacobian", lambda *_: lambda *_: np.full((4, 4), 3.0))
    assert main(["bench", f"{model}:f", "--input", "x0"]) == 1
    captured = capsys.readouterr()
    assert "so there is nothing to time" in captured.err
    assert "faster" not in captured.out


def test_demo(capsys, tmp_path):
    report, picture = tmp_path / "demo.html", tmp_path / "demo.svg"
    assert main(["demo", "--html", str(report), "--draw", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "autoencoder: (256,) -> (256,)" in out
    assert "(matmul), 8 elements" in report.read_text(encoding="utf-8")  # no line of the user's
    assert ".py" not in picture.read_text(encoding="utf-8")
    assert "times" in out


def test_no_line_is_named_where_none_is_the_users(model, tmp_path):
    words = ["--input", "x0", "--draw", "s.svg"]
    for function, named in (("np.tanh", False), ("f", True)):
        assert main(["explain", f"{model}:{function}", *words]) == 0
        picture = (tmp_path / "s.svg").read_text(encoding="utf-8")
        assert (".py" in picture) == named


def test_calibrate_prints_constants(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["calibrate"]) == 0
    out = capsys.readouterr().out
    (kept,) = tmp_path.glob("tapesplit/cost-*.json")
    assert "help('tapesplit.cost.model.CostModel')).\n\nstep " in out
    assert out.endswith(f"\n\nkept in {kept}\n")
    from tapesplit.cost.stored import cost_model

    cost_model.cache_clear()


def test_a_reader_that_has_gone_is_no_reason_not_to_keep_constants(monkeypatch, tmp_path):
    from tapesplit import cli
    from tapesplit.cost.model import CostModel
    from tapesplit.cost.stored import cost_model

    def write(text, **_options):
        if "kept in" in text:
            raise BrokenPipeError

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cli, "measured_costs", CostModel)
    monkeypatch.setattr(cli, "print", write, raising=False)
    with pytest.raises(BrokenPipeError):
        cli._calibrate(None)
    assert [*tmp_path.glob("tapesplit/cost-*.json")]
    cost_model.cache_clear()


def test_calibrate_prints_constants_that_it_cannot_keep(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert main(["calibrate"]) == 1
    out, err = capsys.readouterr()
    assert "help('tapesplit.cost.model.CostModel')).\n\nstep " in out
    assert err.startswith("tapesplit: error: the constants cannot be kept: [Errno 20] Not a directory: ")
    assert err.endswith("; set XDG_CACHE_HOME to a directory that can be written\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explain", "model"], "'model' does not name a function; write FILE.py:FUNCTION"),
        (["explain", "none.py:f"], "there is no file 'none.py'"),
        (["explain", "notes.txt:f"], "notes.txt is no Python file; its name must end in .py"),
        (
            ["explain", "MODEL:g", "--input", "x0"],
            "has no 'g'; it has f, two, broken, plain, named, steps, constant, empty, second\n",
        ),
        (["explain", "MODEL:scaled.g", "--input", "x0"], "has no 'scaled.g'; it has f, two"),
        (["explain", "MODEL:SCALE", "--input", "x0"], "is not a function: its type is float"),
        (["explain", "MODEL:f"], "no input is given"),
        (["explain", "MODEL:f", "--input", "x1"], "NameError: name 'x1' is not defined"),
        (["explain", "MODEL:f", "--input", "no.npy"], "FileNotFoundError"),
        (
            ["explain", "MODEL:f", "--input", "x.npz"],
            "--input 'x.npz' is no .npy file; load it in an expression, as in \"np.load('x.npz')['a']\" or ",
        ),
        (["explain", "MODEL:f", "--input", "'text'"], "could not convert string to float"),
        (
            ["explain", "MODEL:f", "--input", "x0", "--machines", "0"],
            "--machines is 0; give a number of threads, at least 1, or leave it out for all usable cores",
        ),
        (["bench", "MODEL:f", "--input", "x0", "--machines", "-1"], "--machines is -1; give"),
        (
            ["explain", "MODEL:two", "--input", "x0", "--input", "x0", "--argnum", "1", "--argnum", "5"],
            "--argnum is 5; give the position of an input, counted from 0: with 2 inputs the last is 1\n",
        ),
        (
            ["bench", "none.py:f", "--input", "x0", "--argnum", "-1"],
            "--argnum is -1; give the position of an input, counted from 0: with 1 input the last is 0\n",
        ),
        (["explain", "MODEL:f", "--argnum", "5"], "no input is given"),
        (
            ["explain", "MODEL:f", "--input", "None"],
            "--input 'None' is not an array of numbers, it holds objects",
        ),
        (
            ["explain", "MODEL:constant", "--input", "x0"],
            "is zero, since the value does not depend on the input",
        ),
        (["bench", "MODEL:empty", "--input", "x0"], "the Jacobian is empty, so there is nothing to time"),
        (
            ["explain", "MODEL:f", "--input", "x0 + 1j"],
            "--input 'x0 + 1j' is complex; give real numbers, or name the inputs to differentiate by with --",
        ),
        (
            ["explain", "MODEL:f", "--input", "x0", "--draw", "s.gif"],
            "cannot write 's.gif': the name ends in '.gif'; let it end in .svg, .dot, .gv, .png or .pdf\n",
        ),
        (
            ["explain", "MODEL:f", "--input", "x0", "--html", "s.svg"],
            "cannot write 's.svg': the name ends in '.svg'; let it end in .html or .htm\n",
        ),
        (["explain", "MODEL:f", "--input", "x0", "--html", "no/a.html"], "there is no folder 'no'; make it"),
        (["demo", "--draw", "no/a.svg"], "cannot write 'no/a.svg': there is no folder 'no'; make it"),
        (
            ["demo", "--draw", "folder.svg"],
            "cannot write 'folder.svg': it is a folder, or you have no permission",
        ),
        (
            ["explain", "MODEL:two", "--input", "x0"],
            "cannot be called with 1 input: missing a required argument: 'y'; give --input once for each",
        ),
        (["explain", "MODEL:broken", "--input", "x0"], "model_of_test.py, line 16; --traceback shows more)"),
        (
            ["explain", "MODEL:plain", "--input", "x0"],
            "setting an array element with a sequence; while recording plain for its Jacobian",
        ),
        (
            ["explain", "MODEL:named", "--input", "x0"],
            "'n'; for arguments that need a name, write a function in the file that gives them",
        ),
        (
            ["explain", "MODEL:Scaled.times", "--input", "x0"],
            "'Scaled.times' is a method of the class Scaled, which needs an object; make one in the file",
        ),
        (
            ["explain", "MODEL:Scaled.decorated", "--input", "x0"],
            "is a method of the class Scaled, which needs",
        ),
        (["explain", "MODEL:Scaled", "--input", "x0"], "'Scaled' is a class; write the name of a function"),
        (
            ["explain", "MODEL:f", "--input", "junk.npy"],
            "--input 'junk.npy' cannot be evaluated: ValueError: ",
        ),
    ],
)
def test_errors_are_one_line(model, capsys, words, message):
    Path("folder.svg").mkdir()
    Path("notes.txt").touch()
    Path("junk.npy").write_text("1 2 3")
    assert main([word.replace("MODEL", model) for word in words]) == 1
    out, err = capsys.readouterr()
    assert out == ""  # nothing is lost
    assert message in err
    assert err.startswith("tapesplit: error: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["demo", "explain model_of_test.py:f --input x0"])
def test_pictures_that_need_a_missing_package_are_refused_first(model, capsys, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main([*command.split(), "--html", "r.html", "--draw", "d.png"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tapesplit: error: drawing 'd.png' needs matplotlib, which is not installed; ")
    assert main([*command.split(), "--html", "r.html", "--draw", "d.svg"]) == 0


def test_ctrl_c_is_no_traceback(model, capsys, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("tapesplit.cli.compare", interrupted)
    assert main(["bench", f"{model}:f", "--input", "x0"]) == 130
    assert capsys.readouterr().err == "tapesplit: interrupted\n"


def test_characters_that_the_output_cannot_encode_are_replaced(model):
    command = [sys.executable, "-m", "tapesplit", "explain", f"{model}:f", "--input", "x0"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, timeout=60, check=True, env=environment)  # noqa: S603 (our own command)
    assert "?" in done.stdout.decode("ascii")


def test_a_reader_that_stops_is_no_error(model):
    command = f"{sys.executable} -m tapesplit explain {model}:f --input x0 | true"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(  # noqa: S602 (the test's own text)
        command, shell=True, capture_output=True, text=True, timeout=60, check=False, env=buffered
    )
    assert done.stderr == ""


def test_tracebacks_are_there_when_asked_for(model, capsys):
    assert main(["explain", f"{model}:broken", "--input", "x0", "--traceback"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["explain"], ["bench"], ["demo"], ["calibrate"]])
def test_help_has_examples_where_there_are_inputs(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    shown = "tapesplit explain model.py:simulate --input" in capsys.readouterr().out
    assert shown == (command not in (["demo"], ["calibrate"]))
