"""The libraries that are compared, each as a few variants of one problem's Jacobian."""

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import autograd

from benchmarks import problems
from benchmarks.measure import Variant
from tapesplit import parallel_jacobian

# XLA reads this once, when jax is imported for the first time.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

PEERS = ("autograd", "torch", "jax")

_HOPELESS = 50
"""Ratio of rows and columns from which the wrong mode is not tried: it takes gigabytes and minutes."""


def missing(peers: Sequence[str]) -> list[str]:
    """Return the peers that are not installed."""
    return [peer for peer in peers if find_spec(peer) is None]


def variants(name: str, peers: Sequence[str]) -> list[Variant]:
    """Return all variants of a problem; autograd, the reference of correctness, is always the first."""
    modes = _modes(name)
    found = against_autograd(*problems.get(name, "autograd"))
    if "torch" in peers:
        found += [_torch(name, mode) for mode in modes]
    if "jax" in peers:
        found += [_jax(name, mode) for mode in modes]
    return found


def _modes(name: str) -> tuple[str, ...]:
    """Return the modes worth trying for a problem."""
    f, x = problems.get(name, "numpy")
    rows, columns = f(x).size, x.size
    if columns > _HOPELESS * rows:
        return ("adjoint",)
    return ("tangent",) if rows > _HOPELESS * columns else ("tangent", "adjoint")


def against_autograd(f: Callable[[Any], Any], x: Any) -> list[Variant]:
    """Return the Jacobian of a function of autograd.numpy by autograd and by tapesplit."""

    def ours():
        jac = parallel_jacobian(f, machines=1)
        jac.cache_clear()  # a first call takes no plan over from an earlier round
        return lambda: jac(x)

    return [
        Variant("autograd", "adjoint", lambda: lambda: autograd.jacobian(f)(x)),
        Variant("tapesplit", "planned", ours),
    ]


def _torch(name: str, mode: str) -> Variant:
    import torch

    torch.set_num_threads(1)
    f, x = problems.get(name, "torch")
    transform = {"tangent": torch.func.jacfwd, "adjoint": torch.func.jacrev}[mode]
    return Variant("torch", mode, lambda: lambda: transform(f)(x))


def _jax(name: str, mode: str) -> Variant:
    import jax

    from benchmarks.problems_jax_scan import SCANNED

    f, x = problems.get(name, "jax")
    if name in SCANNED:
        f = SCANNED[name]()
    transform = {"tangent": jax.jacfwd, "adjoint": jax.jacrev}[mode]

    def make():
        jac = jax.jit(transform(f))
        return lambda: jac(x).block_until_ready()

    return Variant("jax", mode, make)
