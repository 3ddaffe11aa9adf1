"""Rows that stay apart: their adjoints are carried together, and the Jacobian is the same."""

from dataclasses import replace

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import elementwise_grad, jacobian
from autograd.extend import defvjp, primitive
from autograd.scipy.linalg import solve_banded, solve_triangular
from autograd.scipy.signal import convolve
from autograd.scipy.special import logsumexp
from hypothesis import given, settings
from hypothesis import strategies as st
from traced_memory import traced_peak

import tapesplit.planning.planner
import tapesplit.structures.rows
import tapesplit.sweeps.clusters
from tapesplit import MemoryLimitError, parallel_jacobian, record
from tapesplit.cost.stored import cost_model
from tapesplit.cost.work import work_table
from tapesplit.cuts.chunks import cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.rules import IndexMap
from tapesplit.rules.rows import RowAxes
from tapesplit.structures.facts import facts_of
from tapesplit.structures.row_part import RowBlock
from tapesplit.structures.rows import with_row_part
from tapesplit.sweeps.arrivals import looked_up
from tapesplit.sweeps.prediction import _predict_rows
from tapesplit.sweeps.row_sweep import RowSweep, compile_row_sweep

SAMPLES, FEATURES = 9, 4
RANDOM = np.random.default_rng(0)
TABLE = RANDOM.uniform(-1.0, 1.0, (SAMPLES, FEATURES))
SQUARE = RANDOM.uniform(-1.0, 1.0, (SAMPLES, SAMPLES))
MIXED = RANDOM.uniform(-1.0, 1.0, (FEATURES, FEATURES))
UPPER = np.triu(MIXED) + 3.0 * np.eye(FEATURES)
STACK = RANDOM.uniform(-1.0, 1.0, (SAMPLES, FEATURES, FEATURES)) + 3.0 * np.eye(FEATURES)
X = RANDOM.uniform(0.2, 1.0, FEATURES)
GROUPS = np.array([0, 2, 1, 1, 3, 0, 2, 2, 1])
PAIRS = np.stack([GROUPS, GROUPS[::-1], GROUPS], axis=1)


@pytest.fixture
def always_together(monkeypatch):
    monkeypatch.setattr(tapesplit.structures.rows, "_FEWEST_SWEPT", 1)
    monkeypatch.setattr(tapesplit.structures.rows, "_FEWEST_INPUTS", 1)
    monkeypatch.setattr(tapesplit.planning.planner, "_WORTH_ROWS", 0.0)
    monkeypatch.setattr(tapesplit.planning.planner, "_ROWS_OF_A_CALL", 0.0)
    monkeypatch.setattr(tapesplit.planning.planner, "_WORTH_TOGETHER", np.inf)
    monkeypatch.setattr(tapesplit.planning.planner, "FEWEST_TO_COLOR", np.inf)


def hidden(x):
    return anp.tanh((TABLE * x) @ MIXED + x)


def deep(x):
    h = hidden(x)
    for _ in range(2):
        h = h + anp.tanh(h @ (MIXED * x))
    return h


def recurrent(x):
    weights, h = MIXED * x, hidden(x)
    for _ in range(3):
        h = anp.tanh(h @ weights)
    return h


def below(x):
    """Layers with samples in columns."""
    h = anp.tanh(x[:, None] * TABLE.T + 0.1)
    for _ in range(2):
        h = h + anp.tanh((MIXED * x) @ h + x[:, None])
    return h


def beside(h):
    anp.sum(h**2)
    return h


def weighing(v):
    return v @ anp.tanh(SQUARE * v)


def nested(u):
    slope = elementwise_grad(u)
    return elementwise_grad(lambda t: slope(t)[:, 0] ** 2)


def softmax(h):
    e = anp.exp(h)
    return e / anp.sum(e, axis=1, keepdims=True)


@primitive
def own_sum(h):
    return np.sum(h, axis=1)


defvjp(own_sum, lambda ans, h: lambda g: g[:, None] * np.ones(h.shape))

ROWS = {
    "weights that are rows as well": lambda x: (hidden(x) @ x) @ anp.tanh(SQUARE * (hidden(x) @ x)),
    "the same weights as rows": lambda x: weighing(hidden(x) @ x),
    "a transpose": lambda x: anp.sum(anp.transpose(hidden(x)) ** 2, axis=0),
    "sums over samples": lambda x: anp.sum(deep(x), axis=0),
    "centered columns": lambda x: anp.sum((deep(x) - anp.mean(deep(x), axis=0)) ** 2, axis=1),
    "samples that see each other": lambda x: anp.sum(anp.tanh(SQUARE @ hidden(x)), axis=1),
    "a square table": lambda x: anp.sum(anp.tanh(anp.transpose(hidden(x)) @ hidden(x)), axis=1),
    "pairs": lambda x: anp.sum(anp.exp(-(hidden(x) @ anp.transpose(hidden(x)))), axis=1),
    "a square that rows share": lambda x: anp.sum(SQUARE * (hidden(x) @ x), axis=1),
    "single precision": lambda x: anp.sum(anp.tanh((TABLE.astype(np.float32) * x) @ MIXED), axis=1),
    "lists": lambda x: anp.matmul(hidden(x), MIXED.tolist())[:, 0],
    "a gradient inside": lambda x: elementwise_grad(lambda t: anp.tanh(t) ** 3)(deep(x)) @ x,
    "two gradients inside": lambda x: (
        nested(lambda t: anp.tanh(anp.tanh(t @ (MIXED * x)) @ MIXED) @ x)(TABLE) @ x
    ),
    "a result that nobody reads": lambda x: beside(deep(x)) @ x,
    "joined samples": lambda x: anp.sum(
        anp.tanh(anp.concatenate([hidden(x), deep(x)[2:]]) @ (MIXED * x)), axis=1
    ),
    "differences of samples": lambda x: (deep(x)[1:] - deep(x)[:-1] * x) @ x,
    "a row more": lambda x: anp.concatenate([x[:1], (hidden(x) @ x)[1:-1]]) * x[2],
    "some rows": lambda x: (deep(x) @ x)[2:7],
    "joined rows": lambda x: anp.concatenate([deep(x)[:4], hidden(x)[4:]]) @ x,
    "einsum of three": lambda x: anp.einsum("ij,jk,ik->i", deep(x), MIXED * x, hidden(x)),
    "one layer and a sum": lambda x: anp.sum(hidden(x) ** 2, axis=1),
    "layers": lambda x: deep(x) @ x,
    "the same weights in each layer": lambda x: recurrent(x) @ x,
    "a column": lambda x: deep(x)[:, 1],
    "columns": lambda x: deep(x)[:, ::2],
    "columns backwards": lambda x: anp.sum(deep(x)[:, ::-1] * TABLE, axis=1),
    "a column twice": lambda x: anp.sum(deep(x)[:, [1, 1, 2]] * TABLE[:, :3], axis=1),
    "several results": lambda x: anp.ravel(
        hidden(x) @ anp.reshape(anp.concatenate([x, x**2]), (FEATURES, 2))
    ),
    "long results": lambda x: anp.ravel(hidden(x) @ anp.outer(x, np.ones(12))),
    "results in a grid": lambda x: anp.reshape(anp.tanh(hidden(x)) @ anp.outer(x, x[:3]), (3, -1, 3))[None],
    "results in columns of a grid": lambda x: anp.reshape(anp.ravel(deep(x)[:, 1:] * x[0]), (3, -1)),
    "results as columns": lambda x: anp.stack([deep(x) @ x, anp.sum(hidden(x), axis=1)], axis=1),
    "results behind each other": lambda x: anp.concatenate([deep(x) @ x, anp.sum(hidden(x), axis=1)]) ** 2,
    "results of several lengths": lambda x: anp.concatenate(
        [deep(x) @ x, 0.1 * x, anp.ravel(hidden(x)[:, :3])]
    ),
    "a number behind results": lambda x: anp.concatenate([deep(x) @ x, 0.3 * x[1:2]]),
    "a reshaped column": lambda x: anp.reshape(deep(x) @ anp.reshape(x, (FEATURES, 1)), (SAMPLES,)),
    "by number, row and column": lambda x: anp.sum(deep(x) * x[0] * TABLE[:, :1] * X, axis=1) * x[1],
    "an active column": lambda x: anp.sum(deep(x) * anp.sum(TABLE * x, axis=1)[:, None], axis=1),
    "joined columns": lambda x: anp.concatenate([deep(x), hidden(x)], axis=1) @ anp.concatenate([x, x]),
    "three axes": lambda x: anp.sum((TABLE[:, :, None] * x * MIXED) ** 2, axis=(1, 2)),
    "a sum of three axes": lambda x: anp.sum(
        anp.sum((TABLE[:, :, None] * x * MIXED) ** 2, axis=2) ** 2, axis=1
    ),
    "centers": lambda x: anp.exp(-anp.sum((TABLE[:, None, :] - (x * MIXED)[None]) ** 2, axis=2)) @ x,
    "log of sums": lambda x: logsumexp(deep(x), axis=1),
    "extrema": lambda x: anp.max(deep(x), axis=1) - anp.mean(deep(x), axis=1),
    "norms": lambda x: anp.linalg.norm(deep(x), axis=1),
    "deviations": lambda x: anp.std(deep(x), axis=1) + anp.var(hidden(x), axis=1),
    "softmax": lambda x: softmax(deep(x))[:, 0],
    "where": lambda x: anp.sum(anp.where(deep(x) > 0.0, deep(x), hidden(x) ** 2), axis=1),
    "dot": lambda x: anp.dot(anp.dot(hidden(x), MIXED * x), x),
    "einsum": lambda x: anp.einsum("ij,ij->i", deep(x), hidden(x)),
    "tensordot": lambda x: anp.tensordot(hidden(x), MIXED * x, axes=(1, 1)) @ x,
    "inner": lambda x: anp.inner(hidden(x), MIXED * x)[:, 2],
    "outer": lambda x: anp.sum(anp.outer(hidden(x) @ x, x) ** 2, axis=1),
    "stacks of matrices": lambda x: anp.sum(
        anp.linalg.solve(STACK * x, hidden(x)[:, :, None])[..., 0], axis=1
    ),
    "stacks by one matrix": lambda x: anp.sum((STACK * x) @ (MIXED * x) @ x, axis=1),
    "determinants": lambda x: anp.linalg.det(STACK * x),
    "logarithms of determinants": lambda x: anp.linalg.slogdet(STACK * x)[1],
    "eigenvalues": lambda x: anp.linalg.eigh(STACK * x)[0] @ x,
    "eigenvectors": lambda x: anp.linalg.eigh(STACK * x)[1][:, 1] ** 2,
    "singular values": lambda x: anp.linalg.svd(STACK * x, compute_uv=False) @ x,
    "singular vectors": lambda x: anp.linalg.svd(STACK[:, :3] * x, full_matrices=False)[2][:, 1] ** 2,
    "running sums": lambda x: anp.cumsum(deep(x), axis=1)[:, 2],
    "rows joined and parted": lambda x: anp.concatenate(
        [(u := anp.concatenate([deep(x)[:4], hidden(x)[4:]]))[:4] @ x, u[4:] @ x**2]
    ),
    "complex": lambda x: anp.sum(anp.abs(deep(x) + 1j * hidden(x)), axis=1),
    "complex products": lambda x: anp.abs((deep(x) + 0.5j) @ MIXED @ (MIXED + 1j)) ** 2,
    "complex ends": lambda x: anp.abs((deep(x) + 0.5j) @ (MIXED * x + 1j)) @ MIXED,
    "complex weights": lambda x: anp.abs((deep(x) + 0.5j) @ (MIXED * x + 1j)) ** 2,
    "complex by shared real weights": lambda x: anp.real(anp.exp(1j * hidden(x)) @ (MIXED * x) @ x),
    "real by shared complex weights": lambda x: anp.imag(hidden(x) @ anp.exp(1j * MIXED * x) @ x),
    "shared phases": lambda x: anp.abs(anp.sum(hidden(x) * anp.exp(1j * x), axis=1)) ** 2,
    "shared parameters of complex rows": lambda x: anp.real(anp.sum(hidden(x) * 1j * x + x, axis=1)),
    "conjugates": lambda x: anp.real(anp.conj(u := anp.exp(1j * hidden(x)) @ (MIXED * x + 1j)) * u),
    "shared factors of complex rows": lambda x: anp.sum(
        anp.real(anp.conj(z := anp.exp(1j * hidden(x)) * x) * (z + 1.0)), axis=1
    ),
    "complex einsum": lambda x: anp.real(anp.einsum("ij,jk,k->ik", hidden(x) + 1j, MIXED * x * 1j, x)),
    "structure factors": lambda x: anp.abs(anp.sum(anp.exp(1j * x @ (TABLE[:, :, None] * x)), axis=1)),
    "spectra": lambda x: anp.sum(anp.abs(anp.fft.fft(hidden(x)[:, ::-1], 5) * (x[0] - 2j)) ** 2, axis=1),
    "waves": lambda x: anp.fft.irfft(anp.exp(1j * hidden(x)) * anp.fft.rfft(deep(x), 6), axis=1),
    "columns of a system": lambda x: anp.linalg.solve(MIXED + 3.0 * np.eye(4), deep(x).T)[1:].T,
    "columns of a matrix that rows share": lambda x: anp.linalg.solve(MIXED * x, deep(x).T)[1:].T,
    "constant columns": lambda x: anp.sum(
        TABLE.T * anp.linalg.solve(MIXED * x + 3.0 * np.eye(FEATURES), TABLE.T), axis=0
    ),
    "complex columns": lambda x: anp.abs(anp.linalg.solve(MIXED + 2j, (deep(x) + 0.5j).T))[1],
    "columns of a triangular system": lambda x: solve_triangular(UPPER, deep(x).T, trans="T")[:2].T,
    "columns of a triangle that rows share": lambda x: (
        solve_triangular(MIXED * x, deep(x).T, trans=1, lower=True)[1:].T
    ),
    "columns of a banded system": lambda x: anp.sum(solve_banded((1, 1), TABLE[:3], deep(x).T) ** 2, axis=0),
    "columns of several systems": lambda x: anp.sum(
        anp.linalg.solve(STACK[:2], anp.stack([deep(x).T, hidden(x).T])), axis=(0, 1)
    ),
    "stacks of one system": lambda x: anp.sum(
        anp.linalg.solve(UPPER, deep(x)[:, :, None] * x[:3]) ** 2, axis=(1, 2)
    ),
    "convolutions": lambda x: anp.sum(convolve(deep(x), MIXED[:2, 1:], ([1], [1])) ** 2, axis=(1, 2)),
    "convolutions by rows": lambda x: anp.sum(
        convolve(MIXED[1:], deep(x), ([1], [1]), mode="same") ** 2, axis=(0, 2)
    ),
    "convolutions by weights": lambda x: anp.sum(convolve(deep(x), x[None], ([1], [1])) ** 2, axis=(1, 2)),
    "one number in an array": lambda x: anp.sum(hidden(x) * anp.reshape(x[:1] ** 2, (1, 1)), axis=1),
    "effects of groups": lambda x: anp.sum(anp.tanh(hidden(x) + x[GROUPS][:, None]), axis=1),
    "effects of groups that are rows": lambda x: anp.sum(hidden(x) * (MIXED * x)[GROUPS], axis=1) + x[GROUPS],
    "effects of groups in columns": lambda x: anp.sum(hidden(x).T * (MIXED * x)[:, GROUPS], axis=0),
    "several looked up for each": lambda x: anp.sum(hidden(x)[:, :3] * x[PAIRS], axis=1) * x[1],
    "complex looked up": lambda x: anp.abs(anp.sum(hidden(x) * anp.exp(1j * x)[GROUPS][:, None], axis=1)),
    "repeated for all rows": lambda x: anp.sum(hidden(x) * anp.repeat(x[:3], 3)[:, None], axis=1),
    "looked up and joined": lambda x: anp.sum(
        anp.tanh(anp.concatenate([hidden(x), anp.outer(x, x)[GROUPS]], axis=1)), axis=1
    ),
    "a triangle without elements": lambda x: anp.sum(anp.tril(deep(x), -SAMPLES) + hidden(x), axis=1),
}
COLUMNS = {
    f"{name} in columns": fun
    for name, fun in {
        "layers": lambda x: x @ below(x),
        "a row": lambda x: below(x)[2],
        "several results": lambda x: anp.reshape(anp.concatenate([x, x**2]), (2, FEATURES)) @ below(x),
        "flat results": lambda x: anp.ravel((MIXED * x)[:2] @ below(x)),
        "all features": lambda x: below(x)[:, 2:],
        "all features, joined": lambda x: anp.ravel(
            anp.concatenate([below(x)[:, :4], hidden(x).T[:, 3:]], axis=1) * x[0]
        ),
        "all features of some": lambda x: anp.concatenate([anp.ravel(below(x)[:, 1:-1]), x, deep(x)[2]]),
        "results of both kinds": lambda x: anp.concatenate(
            [x @ below(x), deep(x) @ x, anp.ravel(below(x)[:2])]
        ),
        "a sum": lambda x: anp.sum(below(x) ** 2 * TABLE.T, axis=0),
        "by one weight for each": lambda x: anp.sum(below(x) * (deep(x) @ x), axis=0),
        "turned": lambda x: anp.sum(anp.transpose(below(x)) * deep(x) * x, axis=1),
        "joined": lambda x: anp.concatenate([x, x]) @ anp.concatenate([below(x), hidden(x).T]),
        "einsum": lambda x: anp.einsum("ai,ab->bi", below(x), MIXED * x)[1],
        "in the middle": lambda x: anp.sum(anp.sum(STACK.transpose(1, 0, 2) * x * x[1], axis=2) ** 2, axis=0),
        "norms": lambda x: anp.linalg.norm(below(x), axis=0) + logsumexp(below(x), axis=0),
    }.items()
}
GRID = RANDOM.uniform(-1.0, 1.0, (3, 5, FEATURES))


def field(x):
    """Values at the points of a grid."""
    return anp.tanh((GRID * x) @ (MIXED * x) + x)


def turned_axes(x):
    """The same with the axes of the grid behind the others."""
    return anp.transpose(field(x), (2, 0, 1)) * x[:, None, None]


def points(x):
    """The same for a list of points."""
    return anp.tanh((GRID.reshape(15, FEATURES) * x) @ (MIXED * x))


def near_sources(x):
    """Distances of the points of a grid from sources."""
    d = GRID[:, :, None] - MIXED * x
    return anp.sum(d / (anp.sum(d * d, axis=3, keepdims=True) + 0.1) ** 1.5, axis=2)


GRIDS = {
    "weighted sums": lambda x: field(x) @ x,
    "dot": lambda x: anp.dot(anp.dot(field(x), MIXED * x), x),
    "einsum": lambda x: anp.einsum("ijk,kl,l->ij", field(x), MIXED, x),
    "einsum of points by points": lambda x: anp.einsum("ijk,ijl,kl->ij", field(x), GRID * x, MIXED * x),
    "weights of constants": lambda x: anp.einsum("ijk,kl->ijl", GRID, MIXED * x) @ x,
    "tensordot": lambda x: anp.tensordot(anp.tanh(x), turned_axes(x), axes=1),
    "behind the features": lambda x: anp.einsum("kij,lk->lij", turned_axes(x), MIXED * x)[1],
    "sums": lambda x: anp.sum(field(x) ** 2 * x, axis=2),
    "sums that keep axes": lambda x: anp.sum(field(x) ** 2, axis=2, keepdims=True)[..., 0] * x[0],
    "sums in front": lambda x: anp.sum(turned_axes(x) ** 2 * x[:, None, None], axis=0),
    "several results": lambda x: field(x) @ anp.outer(x, x[:2]),
    "sources": lambda x: near_sources(x) @ x,
    "sources in each place": lambda x: near_sources(x) @ MIXED[:, :2],
    "merged in the middle": lambda x: anp.tanh(anp.reshape(field(x), (15, -1)) @ (MIXED * x)) @ x,
    "made of a list": lambda x: anp.reshape(points(x), (3, 5, -1)) @ (MIXED * x) @ x,
    "made of a list, read as both": lambda x: anp.concatenate(
        [anp.ravel(anp.reshape(points(x), (3, 5, -1)) @ x), points(x) @ x**2]
    ),
    "merged, and made again": lambda x: anp.einsum(
        "ijk,ijk->ij", anp.reshape(anp.reshape(field(x), (15, -1)) @ (MIXED * x), (3, 5, -1)), GRID * x
    ),
    "scaled by places": lambda x: (field(x) * GRID[:, :1, :1] * GRID[:1, :, 1:2]) @ x,
    "scaled by each place": lambda x: (field(x) * GRID[:, :, :1] * x[0]) @ x + x[1],
    "flat among others": lambda x: anp.concatenate([x, anp.ravel(field(x) @ x), anp.ravel(field(x) @ x**2)]),
    "stacks": lambda x: anp.linalg.solve(
        GRID[..., None] * MIXED * x + 3.0 * np.eye(FEATURES), field(x)[..., None]
    )[..., 0],
    "determinants": lambda x: anp.linalg.det(GRID[..., None] * MIXED * x + 3.0 * np.eye(FEATURES)),
    "norms": lambda x: anp.linalg.norm(field(x), axis=2) + logsumexp(field(x), axis=2),
    "running sums": lambda x: anp.cumsum(field(x) * x, axis=2) @ x,
    "complex": lambda x: anp.abs((field(x) + 0.5j) @ (MIXED * x + 1j) @ x) ** 2,
    "complex sums": lambda x: anp.abs(anp.sum(field(x) * anp.exp(1j * x), axis=2)) ** 2,
    "components in front": lambda x: anp.stack([field(x) @ x, field(x)[..., 1] * x[0]]) * x[1],
    "components behind": lambda x: anp.stack([field(x) @ x, field(x)[..., 1] * x[0]], axis=-1) * x[1],
    "differences along the first axis": lambda x: (field(x)[1:] - field(x)[:-1]) @ x,
    "four axes": lambda x: anp.tanh(anp.reshape(field(x), (3, 5, 2, 2)) * x[:2]) @ x[2:] @ x[:2],
}
APART_IN_A_GRID = {
    "one axis turned": lambda x: anp.einsum("ijk,k->ji", field(x), x),
    "scaled along one axis": lambda x: (field(x) * (field(x)[:, :1] @ x)[..., None]) @ x,
    "along one axis": lambda x: field(x) @ x - anp.mean(field(x) @ x, axis=1, keepdims=True),
}
BROADCAST = RANDOM.uniform(0.2, 1.0, (1, FEATURES))
APART = {
    "rows again": lambda x: (deep(x) @ x)[[1, 1, 3, 0]],
    "a function without vector rule": lambda x: own_sum(deep(x)) * x[0],
    "numbers": lambda x: anp.array([x[0] * x[1] * i for i in range(SAMPLES)]),
    "a broadcast operand": lambda x: anp.einsum("ij,ij->i", hidden(x), x[None]),
    "a broadcast operand that rows share": lambda x: anp.einsum("ij,ik,jk->i", hidden(x), TABLE, x[:, None]),
    "a broadcast constant": lambda x: anp.einsum("ij,ij,j->i", hidden(x), BROADCAST, x),
}
PROGRAMS = ROWS | COLUMNS | APART


def together(fun, x=X):
    """Record a function, and compile its tape if it has a row part."""
    tape = record(fun, x)
    facts = facts_of(tape)
    graph = graph_of(tape, facts)
    facts = with_row_part(tape, facts, graph.entries, np.inf)
    (chunk,) = cut_into_chunks(graph, ())
    return tape, facts, compile_row_sweep(tape, facts, chunk) if facts.row_part else None


def assert_near(found, want, digits=1e-12):
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=0.0, atol=digits * (np.abs(want).max() + 0.1))


@pytest.fixture(params=[3000, 0])
def with_and_without_contractions(request, monkeypatch):
    monkeypatch.setattr(tapesplit.sweeps.clusters, "_WORTH_CONTRACTING", request.param)


def assert_blocks_are_right(fun, tape, sweep):
    """Compare with autograd: all at a time, and in blocks that tear rows apart or do not."""
    want = jacobian(fun)(X).reshape(-1, X.size)
    for most in (None, 1, 4, 5, 7):
        assert_near(sweep.jacobian(tape, most), want)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("always_together", "with_and_without_contractions")
def test_adjoints_of_rows_are_those_of_autograd(name):
    tape, _, sweep = together(PROGRAMS[name])
    assert (sweep is None) == (name in APART)
    if sweep is not None:
        assert_blocks_are_right(PROGRAMS[name], tape, sweep)


@pytest.mark.usefixtures("always_together")
def test_columns_that_several_systems_share_are_rows():
    """autograd's derivative has the shape of the stack."""
    tape, facts, sweep = together(lambda x: anp.sum(anp.linalg.solve(STACK[:2], deep(x).T) ** 2, axis=(0, 1)))
    assert len(facts.row_part.calls) > 5
    want = jacobian(lambda x: anp.sum((np.linalg.inv(STACK[:2]) @ deep(x).T) ** 2, axis=(0, 1)))(X)
    assert_near(sweep.jacobian(tape), want)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("always_together")
def test_plans_are_right(name):
    want = jacobian(PROGRAMS[name])(X)
    for method in ("auto", "adjoint"):
        found = parallel_jacobian(PROGRAMS[name], method=method)
        for _ in range(2):
            assert_near(found(X), want)
        if method == "adjoint" and name not in APART:
            assert [task.form for task in found.plan(X).tasks] == ["rows"]


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("layers", ["input", "input", "input", "multiply", "multiply"]),
        ("one layer and a sum", ["input"]),
        ("samples that see each other", ["tanh"]),
        ("a transpose", ["input"]),
        ("layers in columns", ["getitem", "input", "multiply", "multiply"]),
        ("pairs", ["input", "transpose"]),
        ("columns of a matrix that rows share", ["input", "multiply"]),
        ("constant columns", ["add"]),
        ("columns of a triangular system", ["input", "multiply"]),
        ("columns of a triangle that rows share", ["input", "multiply", "transpose"]),
        ("columns of a banded system", ["input", "multiply"]),
        ("columns of several systems", ["input", "multiply"]),
        ("stacks of one system", ["getitem", "input", "multiply"]),
        ("stacks of matrices", ["input"]),
        ("convolutions", ["input", "input", "input", "multiply", "multiply"]),
        ("convolutions by rows", ["input", "input", "input", "multiply", "multiply"]),
        ("convolutions by weights", ["convolve"]),
        ("two gradients inside", ["expand_dims", "input", "multiply", "swapaxes"]),
        ("numbers", None),
    ],
)
@pytest.mark.usefixtures("always_together")
def test_row_parts_end_where_rows_meet(name, ends):
    tape, facts, sweep = together(PROGRAMS[name])
    found = None if sweep is None else sorted({tape.label(end) for end in facts.row_part.ends})
    assert found == (None if ends is None else sorted({*ends}))


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.usefixtures("always_together", "with_and_without_contractions")
def test_points_of_a_grid_are_carried_together(name):
    tape, facts, sweep = together(GRIDS[name])
    part = facts.row_part
    assert max(axes.stop - axes.first for axes in part.axes.values()) > 1
    assert max(block.rows for blocks in part.blocks.values() for block in blocks) >= 10
    assert_blocks_are_right(GRIDS[name], tape, sweep)


@pytest.mark.parametrize("name", APART_IN_A_GRID)
@pytest.mark.usefixtures("always_together")
def test_points_of_a_grid_that_see_others_are_not(name):
    tape, _, sweep = together(APART_IN_A_GRID[name])
    assert_blocks_are_right(APART_IN_A_GRID[name], tape, sweep)


def test_rows_take_elements_from_anywhere_or_take_none():
    moves = IndexMap(np.array([1, 4]), np.array([2, 0]), length=6, size=3)
    axes, value = RowAxes(0, 1), np.zeros(3)
    block, adjoints = RowBlock.of_array((3, 2), axes, origin=0), RANDOM.random((2, 3, 2))
    want = np.zeros((6, 3))
    want[:2, 2], want[4:, 0] = adjoints[:, 0, 1], adjoints[:, 2, 0]
    assert_near(looked_up(adjoints, axes, moves, value, [*block.pieces(0, 6)], range(6)), want)
    for i in range(6):
        found = looked_up(adjoints, axes, moves, value, [*block.pieces(i, i + 1)], range(i, i + 1))
        assert_near(found, want[i : i + 1])


@pytest.mark.parametrize("inputs", [6, 11])
def test_few_parameters_of_many_rows_are_swept_by_adjoints(inputs):
    table = RANDOM.uniform(-1.0, 1.0, (200, inputs, 300))

    def shares(x):
        values = anp.exp(anp.sum(table * anp.reshape(x, (-1, 1)), axis=1))
        return anp.sum(values / anp.sum(values, axis=1, keepdims=True) * table[:, 0], axis=1)

    x = RANDOM.uniform(0.5, 1.0, inputs)
    found = parallel_jacobian(shares, machines=1)
    assert_near(found(x), jacobian(shares)(x))
    assert [task.form for task in found.plan(x).tasks] == ["rows"]


@pytest.mark.usefixtures("always_together")
def test_points_of_a_grid_are_rows_each():
    tape, facts, sweep = together(ROWS["results in a grid"])
    part = facts.row_part
    assert tape.shape(part.start) == (SAMPLES, 3)
    assert part.blocks[part.start] == (RowBlock(0, 0, SAMPLES, 1, 3, 3 * SAMPLES),)
    assert [tape.label(step.index) for step in sweep.views] == ["reshape", "getitem"]
    assert_near(sweep.apart.run(tape, None), sweep.jacobian(tape))


@pytest.mark.usefixtures("always_together")
def test_results_in_single_precision_have_no_row_part():
    *_, sweep = together(lambda x: anp.array(deep(x) @ x, dtype=np.float32))
    assert sweep is None


@pytest.mark.usefixtures("always_together")
def test_a_step_is_predicted_for_each_block_of_rows():
    def twice(x):
        rows = anp.sum(np.ones((40, 30)) * x, axis=1)
        return anp.concatenate([anp.sin(rows), anp.cos(rows)])

    tape = record(twice, np.ones(30))
    facts = facts_of(tape)
    graph, table = graph_of(tape, facts), work_table(facts)
    facts = with_row_part(tape, facts, graph.entries, 10**9)
    part, (chunk,) = facts.row_part, cut_into_chunks(graph, ())
    assert {len(blocks) for blocks in part.blocks.values()} == {1, 2}
    single = replace(part, blocks={index: blocks[:1] for index, blocks in part.blocks.items()})
    seconds, less = (_predict_rows(p, table, chunk, 80).seconds for p in (part, single))
    further = sum(len(part.blocks[index]) - 1 for index in part.calls.tolist())
    assert seconds - less == pytest.approx(further * cost_model().step, rel=0.5)


def test_rows_of_an_input_are_told_apart():
    """A function of each row of a matrix: nearly all derivatives are zero."""
    rows = RANDOM.uniform(0.5, 1.0, (40, 3))

    def lengths(x):
        return anp.sqrt(anp.sum(x**2, axis=1)) * anp.sum(x, axis=1)

    tape, _, sweep = together(lengths, rows)
    assert_near(sweep.jacobian(tape), jacobian(lengths)(rows).reshape(40, -1))
    assert_near(parallel_jacobian(lengths, method="adjoint")(rows), jacobian(lengths)(rows))


@pytest.mark.usefixtures("always_together")
def test_other_rows_are_zero_beside_infinities():
    """As in tangent mode: a row's infinite derivatives are its own."""
    offset = np.where(np.arange(SAMPLES) == 3, 0.0, 9.0)[:, None]

    def roots(x):
        return anp.sum(anp.sqrt((TABLE * x) * offset + offset), axis=1)

    with np.errstate(all="ignore"):
        tape, _, sweep = together(roots)
        found = sweep.jacobian(tape)
    np.testing.assert_array_equal(np.isfinite(found).all(axis=1), np.arange(SAMPLES) != 3)


STEPS = {
    "product": lambda h, x: h @ (MIXED * x),
    "shift": lambda h, x: h + x,
    "tanh": lambda h, x: anp.tanh(h),
    "scale": lambda h, x: h * anp.sum(h, axis=1, keepdims=True) * x[0],
    "reverse": lambda h, x: h[:, ::-1],
    "roll": lambda h, x: anp.concatenate([h[:, 1:], h[:, :1]], axis=1),
    "table": lambda h, x: h * TABLE,
    "softmax": lambda h, x: softmax(h),
    "sum along samples": lambda h, x: h - 0.1 * anp.sum(h, axis=0),
    "other samples": lambda h, x: 0.1 * SQUARE @ h,
    "twice": lambda h, x: 0.5 * (h + h**2),
    "stack": lambda h, x: anp.sum(h[:, :, None] * MIXED * x, axis=1),
    "solution": lambda h, x: anp.linalg.solve(MIXED + 3.0 * np.eye(FEATURES), h.T).T,
    "filter": lambda h, x: anp.real(anp.fft.ifft(anp.fft.fft(h) * (TABLE[0] - 1j))),
    "filter of parameters": lambda h, x: anp.imag(anp.fft.fft(h) * (x + 1j)),
    "modulus": lambda h, x: anp.abs(h + 1j * anp.tanh(h)[:, ::-1] + 0.3),
}
MIXING = {"sum along samples", "other samples", "filter of parameters"}
ENDS = {
    "sum": lambda h, x: anp.sum(h, axis=1),
    "product": lambda h, x: h @ x,
    "columns": lambda h, x: anp.ravel(h[:, :2]),
    "two": lambda h, x: anp.concatenate([h[:, 0], x, h @ x]),
    "table": lambda h, x: h,
    "turned table": lambda h, x: anp.ravel(h.T),
    "part of a turned table": lambda h, x: anp.concatenate([x, anp.ravel(h.T[1:, 2:]), x]),
}


@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6),
    end=st.sampled_from(sorted(ENDS)),
    skips=st.lists(st.integers(0, 5), max_size=2),
    most=st.sampled_from([None, 1, 7]),
)
@settings(max_examples=150, deadline=None)
@np.errstate(over="ignore")  # tanh has a derivative of 1 / cosh(h)**2 in autograd, and h may be large
def test_random_programs(steps, end, skips, most):
    def fun(x):
        values = [TABLE * x]
        for number, step in enumerate(steps):
            value = STEPS[step](values[-1], x)
            values.append(value + values[-2] if number in skips and len(values) > 1 else value)
        return ENDS[end](values[-1], x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tapesplit.structures.rows, "_FEWEST_SWEPT", 1)
        tape, _, sweep = together(fun)
    assert sweep is not None or MIXING & {*steps} or end not in {"sum", "product"}
    if sweep is not None:
        want = jacobian(fun)(X).reshape(-1, X.size)
        assert_near(sweep.jacobian(tape, most), want, 1e-10)


def network(p):
    """A small network at many samples, with a few results."""
    first, second = anp.reshape(p[:120], (3, 40)), anp.reshape(p[120:200], (40, 2))
    return anp.ravel(anp.tanh(INPUTS @ first) @ second + p[200:202])


INPUTS = RANDOM.standard_normal((300, 3))
LABELS = np.arange(300) % 17
WEIGHTS = RANDOM.standard_normal(202)


def test_networks_are_swept_by_rows():
    """The plan says so; fewer multiply-adds than with a direction for each sample, and less memory."""
    found = parallel_jacobian(network)
    assert_near(found(WEIGHTS), jacobian(network)(WEIGHTS))
    plan = found.plan(WEIGHTS)
    assert [task.form for task in plan.tasks] == ["rows"]
    assert plan.cut_reason == "rows"
    assert "adjoint × 600 in rows" in str(plan)
    assert "carry all rows together" in plan.describe("full")
    assert "Rows share directions" in plan.describe("full")
    assert 10 * plan.fma < min(plan.baselines["tangent"], 600 * plan.chain.links[0].edges)


def samples_of_layers(count):
    """The same small layers for each of 300 samples."""
    layers = RANDOM.standard_normal((count, 6, 6))

    def fun(x):
        for weights in layers:
            x = anp.tanh(x @ weights)
        return anp.sum(x, axis=1)

    return fun


def recurrent_weights(p):
    """A small network whose parameters all samples share."""
    h = INPUTS
    for number in range(3):
        h = anp.tanh(h @ anp.reshape(p[9 * number : 9 * number + 9], (3, 3)))
    return h @ p[27:30]


def test_rows_that_share_nothing_share_seeds_instead():
    """One seed for all of them costs less than telling the rows of the input apart."""
    fun, x = samples_of_layers(3), RANDOM.standard_normal((300, 6))
    found = parallel_jacobian(fun, machines=1)
    assert_near(found(x), jacobian(fun)(x))
    (task,) = found.plan(x).tasks
    assert (task.form, task.directions, task.seeds) == ("system", 300, 1)


@pytest.mark.parametrize(
    ("fun", "x", "share_all"),
    [
        (network, WEIGHTS, True),
        (samples_of_layers(3), RANDOM.standard_normal((300, 6)), False),
        (lambda p: anp.tanh(INPUTS @ p[:3] + p[3:][LABELS]), RANDOM.standard_normal(20), False),
    ],
)
def test_rows_that_share_all_they_read_cannot_share_seeds(fun, x, share_all):
    """Each row of the result depends on all inputs."""
    _, facts, _ = together(fun, x)
    assert facts.row_part.rows_share_all == share_all
    assert (jacobian(fun)(x).reshape(300, -1, x.size) != 0.0).any(axis=1).all() == share_all


def test_rows_whose_directions_cannot_share_seeds_stay_together():
    """One seed for all of them would cost less, but each needs its own."""
    weights = WEIGHTS[:30]
    found = parallel_jacobian(recurrent_weights, method="adjoint", machines=1)
    assert_near(found(weights), jacobian(recurrent_weights)(weights))
    (task,) = found.plan(weights).tasks
    assert (task.form, task.directions, task.seeds) == ("rows", 300, 0)


def test_memory_of_rows_is_predicted():
    found = parallel_jacobian(network)
    found(WEIGHTS)
    peak = traced_peak(lambda: found(WEIGHTS))
    plan = found.plan(WEIGHTS)
    recorded = traced_peak(lambda: record(network, WEIGHTS))
    assert plan.peak_bytes / 1.5 < peak - recorded < 1.5 * plan.peak_bytes


def phases_of_samples(x):
    """Complex inside of merged operations, real behind and before."""
    return anp.abs(sum(PHASES ** (i + 1) * x[40 * i : 40 * i + 40] for i in range(4))) @ BLEND


PHASES = RANDOM.standard_normal((100, 40)) + 1j * RANDOM.standard_normal((100, 40))
BLEND = RANDOM.standard_normal((40, 40))


def test_memory_of_rows_with_complex_values_is_predicted_and_limited():
    x = RANDOM.standard_normal(160)
    found = parallel_jacobian(phases_of_samples, method="adjoint")
    want, tape, (sweep,) = found(x), found.tape(x), found.plan(x).sweeps
    assert isinstance(sweep, RowSweep)
    peak = traced_peak(lambda: found.of_tape(tape))
    assert found.plan(x).peak_bytes / 1.5 < peak < 1.05 * found.plan(x).peak_bytes
    for limit in (sweep.together_bytes, (sweep.together_bytes + sweep.carrying_bytes) // 2):
        limited = parallel_jacobian(phases_of_samples, method="adjoint", memory_limit=limit)
        assert_near(limited(x), want)
        assert traced_peak(lambda: limited.of_tape(tape)) - want.nbytes < 1.05 * limit  # noqa: B023


def classes_of_samples(states):
    """Several directions for each row, which arrive in order."""
    chances = anp.exp(anp.tanh(anp.reshape(states, (50, 40)) @ BLEND))
    return chances / anp.sum(chances, axis=1, keepdims=True)


def scattered(p):
    """Complex inside of the row part only."""
    places = anp.reshape(p, (40, 4))
    widths = anp.exp(-0.01 * anp.sum(INPUTS**2, axis=1)[:, None] * places[:, 3])
    return anp.abs(anp.sum(widths * anp.exp(1j * anp.dot(INPUTS, places[:, :3].T)), axis=1))


def layer_and_maxima(p):
    """Outputs of two kinds, whose directions arrive at the same hidden layer."""
    hidden = anp.tanh(anp.reshape(p[:4000], (200, 20)))
    return anp.concatenate([(hidden @ anp.reshape(p[4000:], (20, 3)))[:, 0], anp.max(hidden, axis=1)])


def test_memory_of_rows_is_predicted_where_different_directions_meet():
    x = RANDOM.standard_normal(4060)
    found = parallel_jacobian(layer_and_maxima, machines=1)
    want, tape, (sweep,) = found(x), found.tape(x), found.plan(x).sweeps
    assert_near(want, jacobian(layer_and_maxima)(x))
    assert isinstance(sweep, RowSweep)
    assert found.plan(x).peak_bytes == pytest.approx(traced_peak(lambda: found.of_tape(tape)), rel=0.2)
    for factor in (1.0, 1.5, 2.0):
        limit = int(factor * sweep.together_bytes)
        limited = parallel_jacobian(layer_and_maxima, machines=1, memory_limit=limit)
        assert_near(limited(x), want)
        assert traced_peak(lambda: limited.of_tape(tape)) - want.nbytes < 1.05 * limit  # noqa: B023


def mixed_again(p):
    """Steps that all read the same shared weights."""
    weights = anp.reshape(p, (6, 1, 30))
    mixed = anp.tanh(TIMES * weights)
    for _ in range(3):
        shares = anp.exp(mixed)
        mixed = weights * (shares / anp.sum(shares, axis=0, keepdims=True))
    return anp.ravel(anp.max(mixed, axis=0))


TIMES = RANDOM.uniform(0.2, 1.0, (60, 30))


def test_memory_limits_hold_where_many_steps_read_what_rows_share():
    x = RANDOM.uniform(0.2, 1.0, 180)
    free = parallel_jacobian(mixed_again, machines=1, method="adjoint")
    want, tape, (sweep,) = free(x), free.tape(x), free.plan(x).sweeps
    assert_near(want, jacobian(mixed_again)(x))
    assert isinstance(sweep, RowSweep)
    limit = sweep.together_bytes
    limited = parallel_jacobian(mixed_again, machines=1, method="adjoint", memory_limit=limit)
    assert_near(limited(x), want)
    assert traced_peak(lambda: limited.of_tape(tape)) - want.nbytes < limit


SHARES = RANDOM.standard_normal((20, 60))


def features(x):
    """Columns are rows of the transposed result, which lie in it one element apart."""
    return anp.tanh(SHARES @ anp.reshape(x, (60, 60)))


@pytest.mark.parametrize(("fun", "size"), [(classes_of_samples, 2000), (scattered, 160), (features, 3600)])
def test_memory_of_rows_is_predicted_where_nothing_is_put_in_order(fun, size):
    x = RANDOM.standard_normal(size)
    found = parallel_jacobian(fun, machines=1)
    want, tape, (sweep,) = found(x), found.tape(x), found.plan(x).sweeps
    assert_near(want, jacobian(fun)(x))
    assert isinstance(sweep, RowSweep)
    peak = traced_peak(lambda: found.of_tape(tape))
    assert found.plan(x).peak_bytes / 1.5 < peak < 1.05 * found.plan(x).peak_bytes
    for factor in (1.0, 1.6, 2.5):
        limit = int(factor * sweep.together_bytes)
        limited = parallel_jacobian(fun, machines=1, memory_limit=limit)
        assert_near(limited(x), want)
        assert traced_peak(lambda: limited.of_tape(tape)) - want.nbytes < 1.05 * limit  # noqa: B023


PLACES = RANDOM.uniform(-1.0, 1.0, (30, 20, 16))


def shares_of_places(x):
    """Outer products of a place and its adjoints, which arrive in the order of the result."""
    values = anp.tanh(PLACES @ anp.reshape(x, (16, 8)))
    return values / anp.sum(values**2, axis=2, keepdims=True)


def test_outer_products_of_rows_are_told_apart_without_a_copy():
    x = RANDOM.standard_normal(128)
    found = parallel_jacobian(shares_of_places, machines=1)
    want, tape, (sweep,) = found(x), found.tape(x), found.plan(x).sweeps
    assert_near(want, jacobian(shares_of_places)(x))
    assert isinstance(sweep, RowSweep)
    assert traced_peak(lambda: found.of_tape(tape)) < 1.2 * want.nbytes


def test_memory_limits_hold():
    """In blocks of directions while rows are together; with less memory, each direction for itself."""
    free = parallel_jacobian(network)
    want = free(WEIGHTS)
    (sweep,) = free.plan(WEIGHTS).sweeps
    recorded = traced_peak(lambda: record(network, WEIGHTS))
    assert sweep.apart.least_bytes < sweep.together_bytes
    for limit in (1.2 * sweep.together_bytes, 0.9 * sweep.together_bytes, sweep.least_bytes):
        found = parallel_jacobian(network, memory_limit=int(limit))
        assert_near(found(WEIGHTS), want)
        peak = traced_peak(lambda found=found: found(WEIGHTS))
        assert peak - recorded - want.nbytes < 1.1 * limit
    with pytest.raises(MemoryLimitError):
        parallel_jacobian(network, memory_limit=sweep.least_bytes // 2)(WEIGHTS)


def test_rows_that_do_not_fit_into_memory_together_are_not_swept_as_rows():
    """Each would be a sweep of its own, though few parameters may be swept forward at a time."""
    places = RANDOM.uniform(-1.0, 1.0, (30, 30, 40))

    def of_points(x):
        return anp.tanh(places * x) @ x

    x = RANDOM.uniform(0.5, 1.0, 40)
    free = parallel_jacobian(of_points, machines=1)
    (sweep,) = free.plan(x).sweeps
    assert isinstance(sweep, RowSweep)
    limited = parallel_jacobian(of_points, machines=1, memory_limit=sweep.together_bytes - 1)
    assert_near(limited(x), free(x))
    assert limited.plan(x).tasks[0].form != "rows"


def test_fewest_multiply_adds_do_not_depend_on_times(monkeypatch):
    plans = []
    for worth in (0.0, np.inf):
        monkeypatch.setattr(tapesplit.planning.planner, "_WORTH_ROWS", worth)
        plans.append(parallel_jacobian(network, cost="fma").plan(WEIGHTS))
    assert plans[0].fma == plans[1].fma
    assert {task.form for plan in plans for task in plan.tasks} == {"rows"}


@pytest.mark.parametrize("limit", ["_MOST_CALLS", "_MOST_BLOCKS"])
@pytest.mark.usefixtures("always_together")
def test_small_row_parts(monkeypatch, limit):
    """What is left out of a row part is swept as anything else."""
    monkeypatch.setattr(tapesplit.structures.rows, limit, 2)
    for fun in PROGRAMS.values():
        tape, _, sweep = together(fun)
        if sweep is not None:
            assert_near(sweep.jacobian(tape), jacobian(fun)(X).reshape(-1, X.size))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("always_together")
def test_each_direction_for_itself(name):
    """The same steps without a row part, which small memory limits take."""
    tape, _, sweep = together(PROGRAMS[name])
    if sweep is not None:
        want = jacobian(PROGRAMS[name])(X).reshape(-1, X.size)
        assert_near(sweep.apart.run(tape, None), want)
        assert_near(sweep.apart.run(tape, None, 2), want)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("samples", [10, 60])
@pytest.mark.parametrize("is_flat", [True, False])
def test_states_of_samples_are_told_apart(axis, samples, is_flat):
    """Layers of 32 features, with fewer samples or more, which stand in rows or in columns."""
    weights = RANDOM.standard_normal((3, 32, 32)) / 10.0

    def network(x):
        h = x if axis else x.T
        for layer in weights:
            h = h + anp.tanh(layer @ h)
        h = h if axis else h.T
        return anp.ravel(h) if is_flat else h

    x = RANDOM.standard_normal((32, samples) if axis else (samples, 32))
    found = parallel_jacobian(network)
    assert_near(found(x), jacobian(network)(x))
    (task,) = found.plan(x).tasks
    assert task.form == "rows"
    (sweep,) = found.plan(x).sweeps
    assert max(block.each for blocks in sweep.part.blocks.values() for block in blocks) == 32
    assert not sweep.before.steps
    limited = parallel_jacobian(network, memory_limit=2 * sweep.least_bytes)
    assert_near(limited(x), jacobian(network)(x))


def test_few_parameters_are_swept_forward():
    """Many steps on two columns by three parameters: telling rows apart at each step takes longer."""

    def orbits(p):
        z = INPUTS[:, :2] * p[0]
        for _ in range(40):
            z = z + 0.01 * anp.stack([p[1] * z[:, 1], -p[2] * z[:, 0]], axis=1)
        return z[:, 0]

    found, p = parallel_jacobian(orbits), np.array([1.0, 2.0, 3.0])
    assert_near(found(p), jacobian(orbits)(p))
    assert "rows" not in {task.form for task in found.plan(p).tasks}
