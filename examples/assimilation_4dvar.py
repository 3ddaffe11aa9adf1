"""Data assimilation: from a poor guess and noisy observations to the state of the weather (4D-Var).

Lorenz-96 is a ring of cells with chaotic waves, the fruit fly of weather forecasting. From a background
state and observations of every second cell at a few later times, Gauss-Newton 4D-Var finds the initial
state that fits both best. That is a least squares problem whose Jacobian runs through the whole trajectory
of the model.

Run it in the repository, since it imports the file pictures.py beside it:

    python examples/assimilation_4dvar.py [cells] [steps]

Look at the error of the analysis: far below that of the background, also in cells that nobody observed.

Source of the model: E. N. Lorenz, "Predictability: a problem partly solved", ECMWF 1996.
"""

import sys

import autograd
import autograd.numpy as np
import numpy as onp
from pictures import picture

from tapesplit import parallel_jacobian

DT, FORCING = 0.05, 8.0
BACKGROUND_ERROR, OBSERVATION_ERROR = 1.0, 0.2


def rate(x):
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + FORCING


def step(x):
    """One classical Runge-Kutta step."""
    k1 = rate(x)
    k2 = rate(x + DT / 2 * k1)
    k3 = rate(x + DT / 2 * k2)
    k4 = rate(x + DT * k3)
    return x + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def observations(steps, every=2):
    """Return the function that maps an initial state to every second cell at every second step."""

    def observe(x):
        seen = []
        for k in range(1, steps + 1):
            x = step(x)
            if k % every == 0:
                seen.append(x[::2])
        return np.concatenate(seen)

    return observe


def twin_experiment(cells, steps, random):
    """Make a true state on the attractor, a background near it, and its noisy observations."""
    truth = FORCING + random.standard_normal(cells)
    for _ in range(200):
        truth = step(truth)
    background = truth + BACKGROUND_ERROR * random.standard_normal(cells)
    seen = observations(steps)(truth)
    return truth, background, seen + OBSERVATION_ERROR * random.standard_normal(seen.size)


def gauss_newton(residuals, x, iterations=10):
    """Minimize half the sum of squares, halving steps that do not descend; return the state and all costs."""
    jacobian = parallel_jacobian(residuals)
    costs = []
    for _ in range(iterations):
        r, J = jacobian.value_and_jacobian(x)
        costs.append(0.5 * float(r @ r))
        move = onp.linalg.lstsq(J, -r, rcond=None)[0]
        while 0.5 * onp.sum(residuals(x + move) ** 2) > costs[-1] and onp.abs(move).max() > 1e-12:
            move = move / 2
        x = x + move
    return x, costs, jacobian


def root_mean_square(x):
    return float(onp.sqrt(onp.mean(x**2)))


def draw(truth, background, analysis, costs):
    def on(state, descent):
        state.plot(truth, color="black", label="truth")
        state.plot(background, ":", color="tab:red", label="background")
        state.plot(analysis, "--", color="tab:blue", label="analysis")
        state.plot(
            onp.arange(0, truth.size, 2), truth[::2], "o", color="black", ms=3.5, label="observed cells"
        )
        state.set(xlabel="cell", ylabel="initial state", title="Lorenz-96")
        state.legend(frameon=False, ncols=2, fontsize=8)
        descent.semilogy(costs, "o-")
        descent.set(
            xlabel="Gauss-Newton iteration", ylabel="cost", title="fit to background and observations"
        )

    return on


def main(cells=40, steps=12):
    random = onp.random.default_rng(2)
    truth, background, seen = twin_experiment(cells, steps, random)
    observe = observations(steps)

    def residuals(x):
        misfit = (observe(x) - seen) / OBSERVATION_ERROR
        return np.concatenate([(x - background) / BACKGROUND_ERROR, misfit])

    analysis, costs, jacobian = gauss_newton(residuals, background)
    before, after = root_mean_square(background - truth), root_mean_square(analysis - truth)
    unseen = root_mean_square((analysis - truth)[1::2])
    gradient = jacobian(analysis).T @ residuals(analysis)
    print(f"unknowns     {cells} cells, {seen.size} observations over {steps} steps")
    plans = jacobian.cache_info().misses
    print(f"cost         {costs[0]:.0f} to {costs[-1]:.1f} in {len(costs)} iterations, plans made: {plans}")
    print(f"error        background {before:.3f}, analysis {after:.3f}, unobserved cells {unseen:.3f}")
    assert max(after, unseen) < 0.4 * before
    assert onp.abs(gradient).max() < 1e-6 * costs[0]
    expected = autograd.jacobian(residuals)(analysis)
    assert onp.abs(jacobian(analysis) - expected).max() < 1e-12 * onp.abs(expected).max()
    picture("assimilation_4dvar", draw(truth, background, analysis, costs), panels=2)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
