"""Chains of one's own from JSON files, for the library and for ``jcdp --chain``."""

import json

import pytest

from jcdp_core import (
    ArgumentTypeError,
    ConfigError,
    ElementalJacobian,
    InvalidChainError,
    JacobianChain,
    read_chains,
    solve,
)
from jcdp_core.cli import main
from jcdp_core.report import chain_json

CHAIN = JacobianChain.from_sizes(
    [268, 173, 190, 416, 108, 264, 318], [15162, 76665, 77374, 27642, 94710, 95965]
)
MIXED = JacobianChain(
    (ElementalJacobian(40, 6, 900, adjoint_cost=2700), ElementalJacobian(6, 90, 1200, adjoint=False))
)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and returns its name."""

    def write(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def test_one_chain_several_and_reports(write):
    one = {"sizes": CHAIN.sizes, "edges": CHAIN.edges}
    assert read_chains(write("one.json", one)) == (CHAIN,)
    assert read_chains(write("list.json", [one, one])) == (CHAIN, CHAIN)
    report = {"settings": {}, "chains": [chain_json(c, {"DP": solve(c)}) for c in (CHAIN, MIXED)]}
    assert read_chains(write("report.json", report)) == (CHAIN, MIXED)


def test_links_may_lack_a_mode():
    found = JacobianChain.from_sizes(
        MIXED.sizes, MIXED.edges, adjoint_costs=MIXED.adjoint_costs, adjoint=[True, False]
    )
    assert found == MIXED
    with pytest.raises(InvalidChainError, match="tangent has 1 items for 2 links; give one per link"):
        JacobianChain.from_sizes(MIXED.sizes, MIXED.edges, tangent=[True])
    with pytest.raises(ArgumentTypeError, match="tangent is the bool True, where an Iterable is expected"):
        JacobianChain.from_sizes(MIXED.sizes, MIXED.edges, tangent=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sizes 3 2", r"this is not JSON \(Expecting value.*\); write {"),
        ([], r"there is no chain in it; write {"),
        ([3], r"chain 1 is 3; write {"),
        ({"sizes": [3, 2]}, r"chain 1 has no 'edges'; write {"),
        (
            {"sizes": [3, 2], "edges": [7], "edge": 7},
            r"chain 1 has an unknown member 'edge'; there are sizes",
        ),
        ({"sizes": [3, 2], "edges": [0]}, r"chain 1: edges\[0\] is 0, which is not a positive integer"),
        ({"sizes": [3, 2], "edges": 7}, r"chain 1: edges is the int 7"),
        ({"sizes": [3, 2], "edges": [7], "adjoint": [1]}, r"chain 1: adjoint is the int 1"),
    ],
)
def test_errors_name_file_and_chain(write, capsys, content, message):
    path = write("chain.json", content)
    with pytest.raises(ConfigError, match=rf"chain\.json: {message}"):
        read_chains(path)
    assert main([write("one.in", "available_threads 2\n"), "--chain", path]) == 1
    assert capsys.readouterr().err.startswith(f"jcdp: error: {path}: ")


def test_the_command_solves_given_chains(write, capsys):
    settings, path = write("one.in", "available_threads 3\n"), write("chain.json", [chain_json(CHAIN, {})])
    assert main([settings, "--chain", path]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Settings of solvers\n  available_threads 3\n")
    assert f"  // chains of {path}\n" in text
    assert "size_range" not in text
    assert "makespan 29797092 fma (optimal)" in text
    assert main([settings, "--chain", path, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"]["chain"] == path
    assert document["chains"][0]["solutions"]["DP"]["makespan"] == 29797092


def test_an_empty_name_is_no_chain(write, capsys):
    assert main([write("one.in", "length 2\n"), "--chain", ""]) == 1
    assert capsys.readouterr().err.startswith("jcdp: error: ")


def test_long_lists_of_numbers_are_wrapped(write, capsys):
    long = JacobianChain.from_sizes(range(10**6, 10**6 + 41), range(10**9, 10**9 + 40))
    assert (
        main([write("one.in", "time_to_solve 0.1\n"), "--chain", write("c.json", chain_json(long, {}))]) == 0
    )
    report = capsys.readouterr().out.partition("Tangent cost")[0].splitlines()
    assert max(map(len, report)) <= 100
    numbers = [int(word) for line in report for word in line.split() if word.isdigit() and len(word) == 10]
    assert numbers == [*range(10**9, 10**9 + 40)]


def test_drawings_are_of_one_chain(write, capsys):
    path = write("chains.json", [chain_json(CHAIN, {})] * 2)
    assert main([write("one.in", "length 2\n"), "--chain", path, "--gantt", "chart.txt"]) == 1
    assert "there are 2; give a file of one" in capsys.readouterr().err


def test_plain_modes_that_are_not_possible_are_told(write, capsys):
    path = write("chain.json", chain_json(MIXED, {}))
    assert main([write("one.in", "available_threads 1\n"), "--chain", path]) == 0
    text = capsys.readouterr().out
    assert (
        "Tangent cost: 84000\nAdjoint cost: 351000 (not possible: 1 of 2 links without adjoint mode)" in text
    )
    settings = write("products.in", "matrix_free 0\n")
    long = write("long.json", chain_json(CHAIN, {}))
    assert main([settings, "--chain", long]) == 0
    text = capsys.readouterr().out
    assert "Tangent cost: 103854824 (not possible with these settings)\n" in text
