"""The problems with long loops as a JAX user would write them: ``lax.scan`` instead of an unrolled loop.

Unrolled, their compilation takes minutes; these compile in about a second and compute the same numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)


def _scanned(step, x, length):
    """Apply a step several times."""
    return lax.scan(lambda state, _: (step(state), None), x, None, length=length)[0]


def c_lorenz96():
    dt = 0.005

    def rate(x):
        return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8.0

    def step(x):
        k1 = rate(x)
        k2 = rate(x + (dt / 2) * k1)
        k3 = rate(x + (dt / 2) * k2)
        k4 = rate(x + dt * k3)
        return x + (dt / 6) * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return lambda x: _scanned(step, x, 150)[:4]


def c_burgers():
    viscosity, dx, dt = 0.05, 1.0 / 99, 2e-4
    observed = jnp.array([10, 30, 50, 70, 90])

    def step(u):
        left, center, right = u[:-2], u[1:-1], u[2:]
        flux = center * (right - left) / (2 * dx)
        diffusion = viscosity * (right - 2.0 * center + left) / dx**2
        return jnp.concatenate([u[:1], center + dt * (diffusion - flux), u[-1:]])

    return lambda u: _scanned(step, u, 500)[observed]


def d_scalar_loop():
    def sweep(cells):
        for i in range(10):
            own, a, b = cells[i], cells[i - 1], cells[(i + 1) % 10]
            cells = cells.at[i].set(own + 0.01 * (a * b - own * own * own + jnp.sin(a - b)))
        return cells

    return lambda x: _scanned(sweep, x, 150)


def h_params():
    random = np.random.default_rng(9)
    A = jnp.asarray(random.standard_normal((30, 30)) / np.sqrt(30))
    B = jnp.asarray(random.standard_normal((30, 20)) / np.sqrt(20))

    def f(x):
        parameters = x[30:]
        return _scanned(lambda y: y + 0.05 * (jnp.tanh(A @ y + (B @ parameters)) - 0.1 * y), x[:30], 200)

    return f


SCANNED = {build.__name__: build for build in (c_lorenz96, c_burgers, d_scalar_loop, h_params)}
