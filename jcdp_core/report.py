"""What ``jcdp`` says about a chain: text in the notation of the paper, or JSON."""

from dataclasses import fields
from typing import Any

from jcdp_core.chain import JacobianChain
from jcdp_core.comparison import TITLES
from jcdp_core.config import Config
from jcdp_core.solvers import Solution
from jcdp_core.tables import text_table

__all__ = ["chain_json", "chain_text", "settings_json", "settings_text", "solution_json"]


def settings_text(config: Config, flavour: str) -> str:
    """Return the settings and the flavor of the random stream as text, an indented line per key."""
    lines = [f"  {line}" for line in str(config).splitlines()]
    return "\n".join(["Settings of generator and solvers", *lines, f"  // random stream of {flavour}"])


def chain_text(chain: JacobianChain, solutions: dict[str, Solution]) -> str:
    """Return the report on one chain: sizes, plain costs, a comparison, and each solver's steps.

    The solutions are those that `jcdp_core.comparison.compare` found. Costs are in fma, times in s, machines
    1-based.
    """
    lines = [
        f"Chain of length {len(chain)}",
        f"  sizes {' '.join(map(str, chain.sizes))}",
        f"  edges {' '.join(map(str, chain.edges))}",
        f"Tangent cost: {chain.all_tangent_cost()}",
        f"Adjoint cost: {chain.all_adjoint_cost()}",
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


def settings_json(config: Config, flavour: str) -> dict[str, Any]:
    """Return the settings as JSON data: the keys of the configuration file, and ``flavour``."""
    return {key.name: getattr(config, key.name) for key in fields(config)} | {"flavour": flavour}


def chain_json(chain: JacobianChain, solutions: dict[str, Solution]) -> dict[str, Any]:
    """Return the report on one chain as JSON data.

    The solutions are those that `jcdp_core.comparison.compare` found.

    Returns
    -------
    dict
        ``length``, ``sizes`` (q+1), ``edges``, ``tangent_costs``, ``adjoint_costs`` (q each),
        ``tangent_cost`` and ``adjoint_cost`` of the plain modes (fma), and ``solutions``: by name, the data
        of `solution_json`.

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
        "tangent_cost": chain.all_tangent_cost(),
        "adjoint_cost": chain.all_adjoint_cost(),
        "solutions": {name: solution_json(solution) for name, solution in solutions.items()},
    }


def solution_json(solution: Solution) -> dict[str, Any]:
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
    >>> solution_json(solve(JacobianChain.from_sizes([3, 2], [7])))["steps"][0]["operation"]
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
