"""Functions of packages that are built on autograd: ``python -m benchmarks.packages``.

Circuits of PennyLane, filters of Tidy3D, Maxwell solvers of Ceviche, grcwa and Legume, each called as its own
documentation does. ``pip install pennylane tidy3d ceviche grcwa legume-gme``; what is not installed is left
out and named. Every result is checked before it is timed.
"""

import contextlib
import io
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np

from benchmarks.programs import Program, compare
from benchmarks.report import asked

RANDOM = np.random.default_rng(0)
BUILDERS: dict[str, tuple[str, Callable[[], Program]]] = {}


def builder(package: str) -> Callable[[Callable[[], Program]], Callable[[], Program]]:
    """Register under its name what builds a program, and the package that it takes."""

    def register(build):
        BUILDERS[build.__name__] = package, build
        return build

    return register


def circuit(
    wires: int, layers: Callable[[Any], None], measured: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Return the result of a simulated circuit by its parameters."""
    import pennylane as qml

    @qml.qnode(qml.device("default.qubit", wires=wires), interface="autograd", diff_method="backprop")
    def run(parameters):
        layers(parameters)
        return measured(range(wires))

    return run


@builder("pennylane")
def probabilities():
    """Rotate and entangle 7 qubits: probabilities of all states."""
    import pennylane as qml

    def layers(angles):
        for layer in angles:
            for wire, (first, second) in enumerate(layer):
                qml.RX(first, wires=wire)
                qml.RZ(second, wires=wire)
            for wire in range(6):
                qml.CNOT(wires=[wire, wire + 1])

    return Program(circuit(7, layers, lambda wires: qml.probs(wires=wires)), RANDOM.random((2, 7, 2)))


@builder("pennylane")
def expectations():
    """Entangle 5 qubits strongly: the expectation of each."""
    import pennylane as qml

    run = circuit(
        5,
        lambda angles: qml.StronglyEntanglingLayers(angles, wires=range(5)),
        lambda wires: [qml.expval(qml.PauliZ(wire)) for wire in wires],
    )
    return Program(lambda angles: anp.stack(run(angles)), RANDOM.random((2, 5, 3)))


@builder("pennylane")
def hessian_of_an_energy():
    """Take the second derivatives of the energy of 5 qubits."""
    import pennylane as qml

    pairs = [qml.PauliZ(wire) @ qml.PauliX(wire + 1) for wire in range(4)]
    energy = circuit(
        5,
        lambda angles: qml.BasicEntanglerLayers(angles, wires=range(5)),
        lambda _: qml.expval(qml.Hamiltonian([0.3] * 4, pairs)),
    )
    return Program(autograd.grad(energy), RANDOM.random((2, 5)))


@builder("ceviche")
def fields_behind_a_design():
    """Solve Maxwell's equations on 24 x 24 pixels: intensities along a line by 8 x 8 permittivities."""
    import ceviche

    source = np.zeros((24, 24))
    source[6, 12] = 1.0

    def intensities(density):
        design = anp.ones((24, 24)) + 11 * anp.pad(density, ((8, 8), (8, 8)), mode="constant")
        solver = ceviche.fdfd_ez(1.2e15, 2e-8, design, [4, 4])
        return anp.abs(solver.solve(source)[2][18]) ** 2

    return Program(intensities, RANDOM.random((8, 8)))


@builder("grcwa")
def diffraction_orders():
    """Reflect and transmit a plane wave at a patterned layer of 12 x 12 pixels."""
    import grcwa

    grcwa.set_backend("autograd")

    def orders(density):
        solver = grcwa.obj(11, [1.0, 0.0], [0.0, 1.0], 1.0, 0.1, 0.0, verbose=0)
        solver.Add_LayerUniform(1.0, 1.0)
        solver.Add_LayerGrid(0.3, 12, 12)
        solver.Add_LayerUniform(1.0, 1.0)
        solver.Init_Setup()
        solver.GridLayer_geteps(1 + 11 * density)
        solver.MakeExcitationPlanewave(0, 0, 1, 0, order=0)
        return anp.real(anp.concatenate(solver.RT_Solve(normalize=1, byorder=1)))

    return Program(orders, RANDOM.random(144))


@builder("legume")
def bands_of_a_crystal():
    """Expand a crystal in plane waves: 6 bands at 3 points by the radius and permittivity of holes."""
    import legume  # photonic crystals

    legume.set_backend("autograd")

    def bands(hole):
        layer = legume.ShapesLayer(legume.Lattice("hexagonal"), eps_b=12.0)
        layer.add_shape(legume.Circle(eps=hole[1], r=hole[0]))
        expansion = legume.PlaneWaveExp(layer, gmax=4.0)
        with contextlib.redirect_stdout(io.StringIO()):
            expansion.run(kpoints=np.array([[0.1, 0.3, 0.5], [0.0, 0.1, 0.2]]), pol="tm", numeig=6)
        return expansion.freqs.flatten()

    return Program(bands, np.array([0.25, 1.3]))


# Tidy3D comes last: importing it gives autograd's boxes other operators, with which PennyLane fails.


@builder("tidy3d")
def filtered_design():
    """Filter and project a density of 20 x 20 pixels."""
    from tidy3d.plugins.autograd import make_filter_and_project

    return Program(make_filter_and_project(radius=0.1, dl=0.05, beta=10), RANDOM.random((20, 20)))


@builder("tidy3d")
def interpolated_design():
    """Interpolate 20 x 20 values at 100 points."""
    from tidy3d.plugins.autograd import interpn

    grid = np.arange(20.0)
    points = tuple(RANDOM.random((2, 10)) * 18 + 0.5)
    return Program(lambda values: interpn([grid, grid], values, points), RANDOM.random((20, 20)))


def main() -> int:
    """Measure and report; 1 if a later call takes longer than autograd's."""
    options = asked("packages", __doc__, BUILDERS, repeat=5)
    missing = {package for package, _ in BUILDERS.values() if find_spec(package) is None}
    if missing:
        print(f"not installed: {', '.join(sorted(missing))}")
    built = [(name, BUILDERS[name]) for name in options.names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, of deprecations
        return compare(
            ((name, build()) for name, (package, build) in built if package not in missing), options.repeat
        )


if __name__ == "__main__":
    sys.exit(main())
