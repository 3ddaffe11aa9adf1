"""Uncertainty of a process: how sure is the end if we know how unsure the beginning is.

A block of material is heated, a few probes are read, a reaction proceeds at the rates that the temperatures
allow, and the product is spread over a profile. To first order the covariance of the profile is ``J S Jᵀ``,
where S is the covariance of the inputs and J the Jacobian of the whole process. The stages are joined by a
handful of values, and that is where the tape is cut.

Run it in the repository, since it imports the file pictures.py beside it:

    python examples/uncertainty_pipeline.py [cells]

Look at the printed plan, then at the band of two standard deviations: it holds nineteen of twenty
simulations.
"""

import sys

import autograd.numpy as np
import numpy as onp
from pictures import picture

from tapesplit import parallel_jacobian

PROBES, SPECIES = 6, 4
INPUT_DEVIATION = 0.15


def make_process(cells):
    """Return the map from the initial temperatures of a block to the profile of its product."""
    laplacian = onp.diag(onp.full(cells, -2.0)) + onp.eye(cells, k=1) + onp.eye(cells, k=-1)
    laplacian[0, 0] = laplacian[-1, -1] = -1.0
    place, probe = onp.linspace(0, 1, cells), onp.linspace(0.1, 0.9, PROBES)
    reading = onp.exp(-(((place - probe[:, None]) / 0.05) ** 2))
    reading /= reading.sum(axis=1, keepdims=True)
    catalyst = onp.random.default_rng(4).uniform(0.2, 1.0, (SPECIES, PROBES)) / PROBES
    shapes = onp.sin(onp.outer(place, onp.arange(1, SPECIES + 1)) * onp.pi)

    def heat(temperature):
        for _ in range(12):
            conduction = laplacian @ temperature
            temperature = temperature + 0.2 * conduction + 0.01 * np.tanh(temperature - 1)
        return reading @ temperature

    def react(probes):
        rates = catalyst @ np.exp(4 - 4 / probes)
        amounts = np.ones(SPECIES)
        for _ in range(20):
            amounts = amounts - 0.01 * rates * amounts * (1 + 0.5 * np.roll(amounts, 1))
        return amounts

    def spread(amounts):
        profile = shapes @ amounts
        for _ in range(8):
            profile = profile + 0.2 * (laplacian @ profile) * np.exp(-0.1 * profile**2)
        return profile

    def process(temperature):
        return spread(react(heat(temperature)))

    return process, place


def covariance(place, length=0.1):
    """Errors of neighboring temperatures are alike."""
    distance = (place[:, None] - place) / length
    return INPUT_DEVIATION**2 * onp.exp(-0.5 * distance**2)


def simulated(process, center, S, runs, random):
    """Deviation of the outputs over many simulations."""
    values, vectors = onp.linalg.eigh(S)
    root = vectors * onp.sqrt(onp.maximum(values, 0.0))
    return onp.array([process(center + root @ random.standard_normal(center.size)) for _ in range(runs)])


def draw(place, profile, deviation, outputs, share):
    def on(band, cause):
        first, *_ = band.plot(place, outputs[:60].T, color="gray", linewidth=0.4, alpha=0.5)
        first.set_label("60 simulations")
        band.fill_between(
            place,
            profile - 2 * deviation,
            profile + 2 * deviation,
            alpha=0.4,
            label="± 2 deviations by J S Jᵀ",
        )
        band.plot(place, profile, label="expected")
        band.set(xlabel="place", ylabel="product", title="profile with its uncertainty")
        band.legend(frameon=False)
        cause.plot(place, 100 * share)
        cause.set(
            xlabel="place in the block", ylabel="share of the variance [%]", title="which temperatures matter"
        )

    return on


def main(cells=120, runs=2000):
    process, place = make_process(cells)
    center = 1.5 + 0.5 * onp.sin(onp.pi * place)
    jacobian = parallel_jacobian(process)
    profile, J = jacobian.value_and_jacobian(center)
    S = covariance(place)
    deviation = onp.sqrt(onp.diag(J @ S @ J.T))
    share = onp.sum(J * (J @ S), axis=0)
    outputs = simulated(process, center, S, runs, onp.random.default_rng(5))
    print(jacobian.plan(center).describe("normal"))
    worst = float(onp.abs(outputs.std(axis=0) / deviation - 1).max())
    print(f"deviation    {deviation.max():.4f} at most, {100 * worst:.1f} % from that of {runs} simulations")
    inside = float(onp.mean(onp.abs(outputs - profile) < 2 * deviation))
    print(f"simulations  {100 * inside:.0f} % within 2 deviations")
    assert worst < 0.15
    assert 0.93 < inside < 0.97
    picture(
        "uncertainty_pipeline",
        draw(place, profile, deviation, outputs, share / share.sum()),
        panels=2,
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
