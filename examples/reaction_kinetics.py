"""Parameters of a differential equation: rate constants of a stiff reaction, from measured concentrations.

Robertson's reaction (1966) turns A into B into C, with rate constants that are nine powers of ten apart.
Their logarithms are fitted to noisy measurements of all three, through ``odeint`` of autograd.scipy: the
Jacobian of the residuals comes from sensitivity equations that are solved once for all parameters. It also
says how uncertain the parameters are.

Run it in the repository, since it imports the file pictures.py beside it:

    python examples/reaction_kinetics.py [times]

Look at the standard deviations, and at the errors of the Jacobian and of differences: the solver changes its
steps from one set of parameters to the next.
"""

import sys
import time

import autograd.numpy as np
import numpy as onp
from autograd.builtins import tuple as boxed_tuple
from autograd.scipy.integrate import odeint
from pictures import picture
from scipy.optimize import least_squares

from tapesplit import parallel_jacobian

TRUE = onp.log([0.04, 3e7, 1e4])
START = TRUE + onp.array([0.8, -1.0, 0.7])
SCALES = onp.array([1.0, 1e4, 1.0])
NOISE = 0.01


def rates(y, _t, k):
    """Let A become B, two B become B and C, B and C become A and C."""
    forward, second, back = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
    return np.array([back - forward, forward - second - back, second])


def concentrations(log_k, times, tolerance=1e-8):
    """Return the concentrations at all times but the first, those of B times 10^4."""
    begin = onp.array([1.0, 0.0, 0.0])
    y = odeint(
        rates, begin, times, boxed_tuple((np.exp(log_k),)), rtol=tolerance, atol=1e-4 * tolerance, mxstep=5000
    )
    return y[1:] * SCALES


def differences(fun, x, step=1e-3):
    """Central differences."""
    columns = [(fun(x + e) - fun(x - e)) / (2 * step) for e in step * onp.eye(x.size)]
    return onp.stack(columns, axis=-1)


def draw(times, measured, fitted):
    def on(ax):
        dense = onp.concatenate([[0.0], onp.geomspace(times[1], times[-1], 200)])
        curves = concentrations(fitted, dense)
        for name, curve, points in zip(("A", "$10^4$ B", "C"), curves.T, measured.T, strict=True):
            (line,) = ax.plot(dense[1:], curve, label=name)
            ax.plot(times[1:], points, ".", color=line.get_color())
        ax.set(xscale="log", xlabel="time (s)", ylabel="concentration", title="Robertson's reaction")
        ax.legend(frameon=False)

    return on


def main(count=30):
    times = onp.concatenate([[0.0], onp.geomspace(1e-4, 1e4, count)])
    measured = concentrations(TRUE, times) + NOISE * onp.random.default_rng(0).standard_normal((count, 3))

    def residuals(log_k, tolerance=1e-8):
        return np.ravel(concentrations(log_k, times, tolerance) - measured) / NOISE

    jac = parallel_jacobian(residuals)
    fit = least_squares(residuals, START, jac=jac)
    deviation = onp.sqrt(onp.diag(onp.linalg.inv(fit.jac.T @ fit.jac)))
    for name, true, found, error in zip("123", TRUE, fit.x, deviation, strict=True):
        print(f"log k{name}       true {true:8.4f}, found {found:8.4f} ± {error:.4f}")
    print(f"evaluations  {fit.nfev} of the residuals, {fit.njev} of the Jacobian")

    begun = time.perf_counter()
    J = jac(fit.x)
    print(f"Jacobian     {J.shape[0]} × {J.shape[1]} in {1e3 * (time.perf_counter() - begun):.0f} ms")
    right = differences(lambda log_k: residuals(log_k, 1e-13), fit.x)
    error, of_differences = (
        onp.abs(found - right).max() / onp.abs(right).max() for found in (J, differences(residuals, fit.x))
    )
    print(f"error        {error:.0e} of the Jacobian, {of_differences:.0e} of central differences")
    assert (onp.abs(fit.x - TRUE) < 3 * deviation).all()
    assert error < 1e-5
    picture("reaction_kinetics", draw(times, measured, fit.x))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
