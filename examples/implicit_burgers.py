"""Implicit time steps: Newton's method for Burgers' equation.

``u_t + u u_x = v u_xx`` forms a steep front that travels. Backward Euler takes steps that are far longer
than an explicit method could survive, at the price of a nonlinear system in each. Newton's method solves it
with the exact Jacobian of the residual. All steps have tapes of the same structure, so one plan serves them
all.

Run it in the repository, since it imports the file pictures.py beside it:

    python examples/implicit_burgers.py [cells] [steps]

Look at the residuals: the number of correct digits doubles with every iteration, as it only does with a
correct Jacobian.
"""

import sys

import autograd.numpy as np
import numpy as onp
from pictures import picture

from tapesplit import parallel_jacobian

VISCOSITY, LEFT, RIGHT, TIME = 0.01, 1.0, 0.2, 0.8


def front(x, time):
    """Exact solution: a front that moves with the mean of the values on both sides."""
    speed, jump = (LEFT + RIGHT) / 2, LEFT - RIGHT
    return speed - jump / 2 * onp.tanh(jump * (x - 0.2 - speed * time) / (4 * VISCOSITY))


def make_residual(dx, dt):
    """Return the residual of one backward Euler step with fixed ends."""

    def residual(u, before):
        flux = (u[2:] ** 2 - u[:-2] ** 2) / (4 * dx)
        diffusion = VISCOSITY * (u[2:] - 2 * u[1:-1] + u[:-2]) / dx**2
        inner = u[1:-1] - before[1:-1] + dt * (flux - diffusion)
        return np.concatenate([u[:1] - before[:1], inner, u[-1:] - before[-1:]])

    return residual


def newton(jacobian, u, before, tolerance=1e-12):
    """Solve ``residual(u, before) = 0``; return the solution and the largest residual of each iteration."""
    history = []
    for _ in range(20):
        r, J = jacobian.value_and_jacobian(u, before)
        history.append(float(onp.abs(r).max()))
        if history[-1] < tolerance:
            break
        u = u - onp.linalg.solve(J, r)
    return u, history


def draw(x, states, exact, history):
    def on(solution, convergence):
        for u in states:
            solution.plot(x, u, color="tab:blue", linewidth=1)
        solution.plot(x, exact, "--", color="black", label=f"exact at t = {TIME}")
        solution.set(xlabel="x", ylabel="u", title="a traveling front")
        solution.legend(frameon=False)
        convergence.semilogy(history, "o-")
        convergence.set(xlabel="Newton iteration", ylabel="largest residual", title="the first step")
        convergence.set_xticks(range(len(history)))

    return on


def main(cells=120, steps=40):
    x = onp.linspace(0, 1, cells)
    dx, dt = x[1] - x[0], TIME / steps
    jacobian = parallel_jacobian(make_residual(dx, dt))
    u, states, histories = front(x, 0.0), [], []
    for k in range(1, steps + 1):
        before = u
        u, history = newton(jacobian, before, before)
        histories.append(history)
        if k % (steps // 5) == 0:
            states.append(u)
    error = float(onp.abs(u - front(x, TIME)).mean())
    info = jacobian.cache_info()
    print(f"steps        {steps} of {dt:.4f}; an explicit step must stay below {dx**2 / (2 * VISCOSITY):.4f}")
    print(
        f"Newton       {sum(map(len, histories))} Jacobians of {cells} × {cells}, plans made: {info.misses}"
    )
    print(f"residuals    {', '.join(f'{r:.0e}' for r in histories[0])}")
    print(f"mean error   {error:.1e} against the exact front")
    assert max(history[-1] for history in histories) < 1e-12
    assert all(len(history) <= 6 for history in histories)
    assert error < 1.5 * dt
    picture("implicit_burgers", draw(x, states, front(x, TIME), histories[0]), panels=2)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
