"""What ``jcdp`` says about a chain: text in the notation of the paper, or JSON."""

from collections.abc import Iterable
from dataclasses import fields
from textwrap import fill
from typing import Any, Final

from jcdp_core.chain import JacobianChain
from jcdp_core.comparison import TITLES
from jcdp_core.config import Config
from jcdp_core.operation import Mode
from jcdp_core.solvers import Solution
from jcdp_core.tables import text_table

__all__ = ["chain_json", "chain_text", "settings_json", "settings_text"]


def settings_text(config: Config, source: str, *, is_random: bool) -> str:
    """Return the settings and the source of the chains as text, an indented line per key.

    Settings of the generator are left out unless the chains are random.
    """
    lines = [f"  {line}" for line in str(config).splitlines() if is_random or line.split()[0] in _OF_SOLVERS]
    title = "Settings of generator and solvers" if is_random else "Settings of solvers"
    return "\n".join([title, *lines, f"  // {source}"])


_OF_SOLVERS: Final = frozenset({"available_threads", "available_memory", "matrix_free", "time_to_solve"})
"""Keys of the configuration file that say how chains are solved."""


def chain_text(chain: JacobianChain, solutions: dict[str, Solution]) -> str:
    """Return the report on one chain: sizes, plain costs, a comparison, and each solver's steps.

    The solutions are those that `jcdp_core.comparison.compare` found. Costs are in fma, times in s, machines
    1-based.
    """
    lines = [
        f"Chain of length {len(chain)}",
        _numbers("  sizes", chain.sizes),
        _numbers("  edges", chain.edges),
        f"Tangent cost: {_plain_cost(chain, Mode.TANGENT, solutions)}",
        f"Adjoint cost: {_plain_cost(chain, Mode.ADJOINT, solutions)}",
        "",
        _comparison(solutions),
    ]
    shown: dict[str, str] = {}
    for name, solution in solutions.items():
        title, *steps = str(solution).splitlines()
        same = shown.setdefault("\n".join(steps), name)
        nodes = "" if solution.nodes is None else f", {solution.nodes} nodes"
        lines += [
            "",
            f"{name} ({TITLES[name]})",
            f"  {solution.seconds:.6f} s{nodes}, lower bound {solution.lower_bound}",
            f"  {title}",
            *([f"  {step}" for step in steps] if same == name else [f"  steps and schedule of {same}"]),
        ]
    return "\n".join(lines)


def _numbers(title: str, numbers: Iterable[int]) -> str:
    """Write numbers behind a title, in lines of 100 characters at most if they are many."""
    indent = " " * (len(title) + 1)
    return fill(
        f"{title} {' '.join(map(str, numbers))}", 100, subsequent_indent=indent, break_long_words=False
    )


def _plain_cost(chain: JacobianChain, mode: Mode, solutions: dict[str, Solution]) -> str:
    """Write the cost of a plain mode, and that it is not possible if links lack it or plans cost more."""
    name = mode.name.lower()
    cost = chain.all_tangent_cost() if mode is Mode.TANGENT else chain.all_adjoint_cost()
    without = sum(not getattr(link, name) for link in chain)
    if without:
        return f"{cost} (not possible: {without} of {len(chain)} links without {name} mode)"
    bound = max((solution.lower_bound for solution in solutions.values()), default=0)
    return f"{cost} (not possible with these settings)" if cost < bound else str(cost)


def _comparison(solutions: dict[str, Solution]) -> str:
    """Return a table of what the solvers found."""
    best = min(solution.makespan for solution in solutions.values())
    rows = [
        (
            name,
            solution.makespan,
            f"{best / solution.makespan:.3f}",
            "optimal" if solution.optimal else "",
            f"{1e3 * solution.seconds:.3f}",
        )
        for name, solution in solutions.items()
    ]
    return text_table("Solvers", ("solver", "makespan", "best/makespan", "proof", "ms"), rows)


def settings_json(config: Config, **source: str) -> dict[str, Any]:
    """Return the settings as JSON data: the keys of the configuration file, and the source of the chains."""
    return {key.name: getattr(config, key.name) for key in fields(config)} | source


def chain_json(chain: JacobianChain, solutions: dict[str, Solution]) -> dict[str, Any]:
    """Return the report on one chain as JSON data.

    The solutions are those that `jcdp_core.comparison.compare` found.

    Returns
    -------
    dict
        ``length``, ``sizes`` (q+1), ``edges``, ``tangent_costs``, ``adjoint_costs`` (q each), ``tangent`` and
        ``adjoint`` (q flags each) if some link lacks a mode, ``tangent_cost`` and ``adjoint_cost`` of the
        plain modes (fma, whether or not they are possible), and ``solutions``: by name, the data of
        `_solution_json`.

    Examples
    --------
    >>> chain_json(JacobianChain.from_sizes([3, 2], [7]), {})["adjoint_cost"]
    14
    """
    return {
        "length": len(chain),
        "sizes": chain.sizes,
        "edges": chain.edges,
        "tangent_costs": chain.tangent_costs,
        "adjoint_costs": chain.adjoint_costs,
        **_missing_modes(chain),
        "tangent_cost": chain.all_tangent_cost(),
        "adjoint_cost": chain.all_adjoint_cost(),
        "solutions": {name: _solution_json(solution) for name, solution in solutions.items()},
    }


def _missing_modes(chain: JacobianChain) -> dict[str, list[bool]]:
    """Return which links have tangent and adjoint mode; nothing if all have both."""
    modes = {name: [getattr(link, name) for link in chain] for name in ("tangent", "adjoint")}
    return {} if all(map(all, modes.values())) else modes


def _solution_json(solution: Solution) -> dict[str, Any]:
    """Return a solution as JSON data; integers are exact.

    Returns
    -------
    dict
        ``method``, ``machines`` (null if unlimited), ``makespan`` and ``lower_bound`` (fma), ``optimal``,
        ``seconds``, ``nodes`` (null without a search), and ``steps``: ``operation`` in the paper's notation,
        ``cost``, ``start`` and ``finish`` (fma), ``machine`` and ``pool`` (1-based), ``successor`` (1-based,
        null for the last step).

    Examples
    --------
    >>> from jcdp_core import solve
    >>> _solution_json(solve(JacobianChain.from_sizes([3, 2], [7])))["steps"][0]["operation"]
    'ACC ADJ (0 1)'
    """
    sequence = solution.sequence
    tasks = solution.schedule.tasks
    steps = zip(sequence.operations, sequence.costs, sequence.successors, tasks, strict=True)
    return {
        "method": solution.method,
        "machines": solution.machines,
        "makespan": solution.makespan,
        "lower_bound": solution.lower_bound,
        "optimal": solution.optimal,
        "seconds": solution.seconds,
        "nodes": solution.nodes,
        "steps": [
            {
                "operation": str(operation),
                "cost": cost,
                "start": task.start,
                "finish": task.finish,
                "machine": task.machine + 1,
                "pool": [machine + 1 for machine in task.pool],
                "successor": None if successor is None else successor + 1,
            }
            for operation, cost, successor, task in steps
        ],
    }
