"""The command ``tapesplit``: explain a function's Jacobian, time it, calibrate, show a demonstration."""

import argparse
import inspect
import os
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

import jcdp_core
import tapesplit
from tapesplit.bench import compare
from tapesplit.callback import Callback
from tapesplit.cost.stored import store
from tapesplit.decorator import parallel_jacobian
from tapesplit.draw.endings import PICTURES, REPORTS, check_file, check_picture
from tapesplit.draw.numbers import plural, seconds_text
from tapesplit.errors import CommandError, TapesplitError
from tapesplit.loading import load_function, load_inputs, undecorated
from tapesplit.planning.calibrate import measured_costs
from tapesplit.planning.plan import JacobianPlan
from tapesplit.validation import Method

__all__ = ["main"]

_RUNS: Final = 5
"""Runs that are measured for a report."""
_NAMED: Final = "for arguments that need a name, write a function in the file that gives them"
_OURS: Final = (Path(tapesplit.__file__).parent, Path(jcdp_core.__file__).parent)
"""Folders of our packages."""
_EXAMPLES: Final = """\
examples:
  tapesplit demo
  tapesplit explain model.py:simulate --input 'np.ones(40)'
  tapesplit explain model.py:simulate --input x0.npy --machines 2 --html report.html --draw split.svg
  tapesplit bench model.py:simulate --input x0
  tapesplit calibrate

An input is an expression in which np is numpy and the names of the function's file are known, or a .npy
file. Give --input once for each argument of the function; write --input=-x0 for what begins with a minus.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    `arguments` are the words after ``tapesplit``, by default those of this process. The result is 0; 1 after
    an error, which is told in one line unless ``--traceback`` asks for more; 130 after Ctrl-C.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # of encodings without a sign for µ or Ḟ, as on Windows
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            # Plans report a missing dependence as an error; comparisons do not need one.
            warnings.filterwarnings("ignore", "Output seems independent of input", UserWarning)
            options.run(options)
        print(end="", flush=True)  # unlike sys.stdout.flush, also where standard output is closed
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("tapesplit: interrupted", file=sys.stderr)
        return 130
    except Exception as error:  # noqa: BLE001 - the user's function may raise anything
        if options.traceback:
            traceback.print_exc()
        else:
            print(f"tapesplit: error: {_told(error)}{_hint(error, options)}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    """Declare the command line."""
    parser = argparse.ArgumentParser(
        prog="tapesplit",
        description="Full Jacobians for autograd code by scheduled Jacobian chaining.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tapesplit {tapesplit.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    explain = _command(commands, "explain", _explain, "say how a Jacobian is computed, and why so")
    _add_function(explain)
    explain.add_argument(
        "--level",
        choices=("line", "normal", "full"),
        default="full",
        help="how much to say (default: full, with reasons and advice)",
    )
    _add_files(explain)
    _add_function(_command(commands, "bench", _bench, "time a Jacobian against autograd.jacobian"))
    _command(
        commands, "calibrate", _calibrate, "measure the constants that predict run times on this machine"
    )
    _add_files(_command(commands, "demo", _demo, "explain and time the Jacobian of an autoencoder"))
    return parser


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], None], text: str) -> Any:
    """Add a subcommand."""
    parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=_EXAMPLES if run in {_explain, _bench} else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--traceback", action="store_true", help="show the traceback of an error")
    parser.set_defaults(run=run)
    return parser


def _add_function(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a function and its inputs."""
    parser.add_argument(
        "function",
        metavar="FILE.py:FUNCTION",
        help="function of autograd.numpy operations, or of an object: OBJECT.METHOD",
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="EXPR",
        help="expression or .npy file, once for each argument",
    )
    parser.add_argument(
        "--argnum",
        type=int,
        action="append",
        metavar="N",
        help="position of an argument to differentiate by, from 0, once for each (default: all); "
        "these become arrays of float, the others are passed as they are",
    )
    parser.add_argument(
        "--method",
        choices=get_args(Method),
        help="how the chain is planned, or one plain sweep (default: auto)",
    )
    parser.add_argument(
        "--machines", type=int, metavar="N", help="threads to plan for (default: all usable cores)"
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Add the options that name files to write."""
    parser.add_argument("--html", metavar="FILE", help="write a report")
    parser.add_argument("--draw", metavar="FILE", help="draw the split tape: .svg, .dot, .png or .pdf")


def _explain(options: argparse.Namespace) -> None:
    """Run ``tapesplit explain``."""
    _check_files(options)
    fun, args, settings = _loaded(options)
    _show(fun, args, options, **settings)


def _loaded(options: argparse.Namespace) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Load the function, its arguments, and the options of its Jacobian; refuse a wrong number of arguments.

    What the command line does not say is taken from a function that is decorated already.
    """
    asked = _settings(options)
    fun, names = load_function(options.function)
    inputs = len(options.input)
    fun, decorated = undecorated(fun, inputs)
    settings = {"argnum": tuple(range(inputs))} | decorated | asked
    args = load_inputs(options.input, names, settings["argnum"])
    options.argnum = options.argnum or decorated.get("argnum")  # for the hint, if the function fails
    signature = inspect.signature(fun)
    try:
        signature.bind(*args)
    except TypeError as error:
        needs_names = any(
            parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
            for parameter in signature.parameters.values()
        )
        raise CommandError(
            f"{options.function} cannot be called with {plural(inputs, 'input')}: {error}; "
            + (_NAMED if needs_names else "give --input once for each argument")
        ) from error
    return fun, args, settings


def _show(fun: Callable[..., Any], args: Sequence[Any], options: argparse.Namespace, **settings: Any) -> None:
    """Plan, print, write the files that were asked for; a report has the times of the fastest run."""
    runs: list[Any] = []
    observer = Callback(finish=lambda _plan, records: runs.append(records))
    jacobian = parallel_jacobian(fun, callback=observer, **settings)
    plan = _without_our_lines(jacobian.plan(*args))
    print(plan.describe(getattr(options, "level", "normal")))
    if options.draw:
        plan.draw(options.draw)
        print(f"\nwrote {options.draw}")
    if options.html:
        for _ in range(_RUNS):
            jacobian(*args)
        plan.to_html(options.html, min(runs, key=lambda records: max(record.finish for record in records)))
        print(f"\nwrote {options.html}")


def _without_our_lines(plan: JacobianPlan) -> JacobianPlan:
    """Forget our own line, noted for inputs, and for operations that no line of the user's has called."""
    ours = plan.lines[0]
    return replace(plan, lines=tuple("" if line == ours else line for line in plan.lines))


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `parallel_jacobian` that were asked for."""
    inputs, argnum = range(len(options.input)), options.argnum or ()
    if inputs and not set(argnum) <= set(inputs):  # where there are none, that is the error to tell
        raise CommandError(
            f"--argnum is {next(n for n in argnum if n not in inputs)}; give the position of an input, "
            f"counted from 0: with {plural(len(inputs), 'input')} the last is {inputs[-1]}"
        )
    if options.machines is not None and options.machines < 1:
        raise CommandError(
            f"--machines is {options.machines}; give a number of threads, at least 1, or leave it out for "
            "all usable cores"
        )
    asked = {"argnum": tuple(argnum), "machines": options.machines, "method": options.method}
    return {name: value for name, value in asked.items() if value}


def _check_files(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written before there is work to lose."""
    if options.html is not None:
        check_file(options.html, REPORTS)
    if options.draw is not None:
        check_picture(options.draw, PICTURES)


def _bench(options: argparse.Namespace) -> None:
    """Run ``tapesplit bench``."""
    fun, args, settings = _loaded(options)
    print(compare(fun, args, **settings))


def _calibrate(_options: argparse.Namespace) -> None:
    """Run ``tapesplit calibrate``."""
    model = measured_costs()
    print("What one unit of each kind of work takes (names: help('tapesplit.cost.model.CostModel')).\n")
    for name, seconds in asdict(model).items():
        print(f"{name:22} {seconds_text(seconds)}")
    try:
        place = store(model)
    except OSError as error:
        raise CommandError(
            f"the constants cannot be kept: {error}; set XDG_CACHE_HOME to a directory that can be written"
        ) from error
    print(f"\nkept in {place}")


def _demo(options: argparse.Namespace) -> None:
    """Run ``tapesplit demo``."""
    _check_files(options)
    fun, x = _autoencoder()
    _show(fun, [x], options)
    print(f"\n{compare(fun, [x])}")


def _autoencoder() -> tuple[Callable[..., Any], np.ndarray]:
    """Make an autoencoder whose values pass through 8 elements, and an input of 256."""
    import autograd.numpy as anp  # noqa: PLC0415 - only the demonstration needs it

    random = np.random.default_rng(0)
    widths = (256, 128, 8, 128, 256)
    weights = [random.standard_normal((m, n)) / np.sqrt(n) for n, m in pairwise(widths)]

    def autoencoder(x: Any) -> Any:
        for weight in weights:
            x = anp.tanh(weight @ x)
        return x

    autoencoder.__qualname__ = "autoencoder"
    return autoencoder, random.standard_normal(widths[0])


def _told(error: Exception) -> str:
    """Tell an error in one line: one that we did not raise ourselves with its type and place."""
    if isinstance(error, TapesplitError):
        return str(error)
    places = traceback.extract_tb(error.__traceback__)
    user = [place for place in places if not _is_installed(place.filename)]
    if not user and isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    where = f"{user[-1].filename}, line {user[-1].lineno}; " if user else ""
    told = "; ".join([str(error).rstrip("."), *getattr(error, "__notes__", ())]).replace("\n", " ")
    return f"{type(error).__name__}: {told} ({where}--traceback shows more)"


def _hint(error: Exception, options: argparse.Namespace) -> str:
    """Say that all inputs became arrays, where that may be why the user's function has failed."""
    several = len(getattr(options, "input", ())) > 1 and options.argnum is None
    if not several or isinstance(error, TapesplitError):
        return ""
    return "; all inputs are differentiated by: --argnum N keeps the others as they are"


def _is_installed(filename: str) -> bool:
    """Whether a file belongs to Python or to a package, not to the user."""
    path = Path(filename)
    homes = (*_OURS, sysconfig.get_path("stdlib"))
    installed = any(path.is_relative_to(home) for home in homes)
    return installed or "site-packages" in path.parts or filename.startswith("<")
