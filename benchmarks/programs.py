"""Ordinary programs, as users write them: ``python -m benchmarks.programs``.

Loops, linear algebra, slices, special functions, and Hessians as Jacobians of gradients, in sizes that take a
moment. The problems of ``python -m benchmarks`` have bars; these must only be faster than with autograd.
Every result is checked before it is timed.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import autograd
import autograd.numpy as anp
import numpy as np
from autograd.scipy.signal import convolve
from autograd.scipy.special import digamma, erf, gammaln, logsumexp
from autograd.scipy.stats import norm
from threadpoolctl import threadpool_limits

from benchmarks.measure import measure
from benchmarks.peers import against_autograd
from benchmarks.report import asked, milliseconds

RANDOM = np.random.default_rng(0)


class Program(NamedTuple):
    """A function and the point where its Jacobian is taken."""

    function: Callable[[Any], Any]
    point: np.ndarray


PROGRAMS: dict[str, Program] = {}


def program(point: np.ndarray) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register a function under its name."""

    def register(function):
        PROGRAMS[function.__name__] = Program(function, point)
        return function

    return register


def hessian_of(name: str, point: np.ndarray) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register the gradient of a function, so that its Jacobian is a Hessian."""

    def register(function):
        PROGRAMS[name] = Program(autograd.grad(function), point)
        return function

    return register


# Time steppers


@program(np.array([1.1, 0.4, 0.1, 0.4]))
def lotka_volterra(p):
    """Take 40 Runge-Kutta steps; all states by the parameters."""

    def rate(y):
        return anp.array([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])

    y, states = np.array([10.0, 5.0]), []
    for _ in range(40):
        k1 = rate(y)
        k2 = rate(y + 0.05 * k1)
        k3 = rate(y + 0.05 * k2)
        k4 = rate(y + 0.1 * k3)
        y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(y)
    return anp.concatenate(states)


@program(np.array([1.0, 0.5, 0.2]))
def decay_chain(p):
    """Take 60 Euler steps on a list of numbers."""
    y, states = [1.0, 0.0, 0.0], []
    for _ in range(60):
        rate = [-p[0] * y[0], p[0] * y[0] - p[1] * y[1], p[1] * y[1] - p[2] * y[2]]
        y = [a + 0.01 * b for a, b in zip(y, rate, strict=True)]
        states += y
    return anp.array(states)


@program(RANDOM.random(400))
def heat_with_roll(u):
    """Take 20 steps on a torus."""
    u = anp.reshape(u, (20, 20))
    for _ in range(20):
        neighbors = anp.roll(u, 1, 0) + anp.roll(u, -1, 0) + anp.roll(u, 1, 1) + anp.roll(u, -1, 1)
        u = u + 0.1 * (neighbors - 4 * u) + 0.01 * u * (1 - u)
    return anp.ravel(u)[::8]


@program(RANDOM.random(256))
def heat_with_slices(u):
    """Take 20 steps on a square with cold walls."""
    u = anp.reshape(u, (16, 16))
    for _ in range(20):
        inner = u[1:-1, 1:-1]
        neighbors = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        u = anp.pad(inner + 0.1 * (neighbors - 4 * inner), 1, mode="constant")
    return anp.ravel(u)


@program(RANDOM.random(64) + 0.5)
def implicit_steps(u):
    """Take 15 steps with a linear solve each."""
    matrix = 3 * np.eye(64) - np.eye(64, k=1) - np.eye(64, k=-1)
    for _ in range(15):
        u = anp.linalg.solve(matrix, u + 0.1 * u * (1 - u))
    return u


@program(RANDOM.standard_normal(30))
def bodies(state):
    """Move 5 bodies that attract each other 20 steps."""
    places = [state[3 * i : 3 * i + 3] for i in range(5)]
    speeds = [state[15 + 3 * i : 18 + 3 * i] for i in range(5)]
    for _ in range(20):
        pulls = []
        for here in places:
            distances = [there - here for there in places if there is not here]
            pulls.append(sum(d / (anp.linalg.norm(d) + 0.3) ** 3 for d in distances))
        speeds = [v + 0.01 * pull for v, pull in zip(speeds, pulls, strict=True)]
        places = [q + 0.01 * v for q, v in zip(places, speeds, strict=True)]
    return anp.concatenate(places + speeds)


@program(np.array([0.5, 0.3, 0.2, 0.1, 0.4, 0.6]))
def kalman_filter(p):
    """Filter 60 measurements; innovations by the noise parameters."""
    step, observe = np.eye(4) + 0.1 * KALMAN[:4], KALMAN[4:]
    noise, error = anp.diag(p[:4] ** 2), anp.diag(p[4:] ** 2) + 0.1 * np.eye(2)
    mean, cov, innovations = np.zeros(4), np.eye(4), []
    for y in MEASURED:
        mean, cov = step @ mean, step @ cov @ step.T + noise
        gain = anp.linalg.solve(observe @ cov @ observe.T + error, observe @ cov).T
        innovation = y - observe @ mean
        mean, cov = mean + gain @ innovation, cov - gain @ observe @ cov
        innovations.append(innovation)
    return anp.concatenate(innovations)


KALMAN, MEASURED = RANDOM.standard_normal((6, 4)), RANDOM.standard_normal((60, 2))


# Robots and geometry


@program(RANDOM.standard_normal(24))
def rotations(angles):
    """Chain rotations by Rodrigues' formula."""
    frame, ends = np.eye(3), []
    for w in anp.reshape(angles, (8, 3)):
        K = anp.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
        angle = anp.sqrt(anp.sum(w**2) + 1e-12)
        frame = frame @ (np.eye(3) + anp.sin(angle) / angle * K + (1 - anp.cos(angle)) / angle**2 * K @ K)
        ends.append(frame @ np.ones(3))
    return anp.concatenate(ends)


@program(RANDOM.standard_normal(12))
def homogeneous_transforms(q):
    """Place the joints of an arm by products of 4 x 4 matrices."""
    frame, joints = np.eye(4), []
    for i in range(12):
        c, s = anp.cos(q[i]), anp.sin(q[i])
        frame = anp.dot(frame, anp.array([[c, -s, 0, 0.3], [s, c, 0, 0], [0, 0, 1, 0.1 * i], [0, 0, 0, 1]]))
        joints.append(frame[:3, 3])
    return anp.concatenate(joints)


@program(RANDOM.standard_normal(90))
def distances(x):
    """Measure all distances between 30 points."""
    points = anp.reshape(x, (30, 3))
    return anp.ravel(anp.sqrt(anp.sum((points[:, None] - points[None]) ** 2, axis=-1) + 0.01))


# Statistics and learning


@program(RANDOM.standard_normal(745) * 0.1)
def network(theta):
    """Evaluate a small network; all outputs by its flat parameters."""
    layers, start = [], 0
    for n, m in ((10, 20), (20, 20), (20, 5)):
        weights = anp.reshape(theta[start : start + n * m], (n, m))
        layers.append((weights, theta[start + n * m : start + (n + 1) * m]))
        start += (n + 1) * m
    values = SAMPLES
    for weights, bias in layers:
        values = anp.tanh(anp.dot(values, weights) + bias)
    return anp.ravel(values)


SAMPLES = RANDOM.standard_normal((40, 10))


@program(RANDOM.random(90))
def kernel_density(x):
    times = np.linspace(0.0, 1.0, 300)
    return anp.mean(anp.exp(-50.0 * (times[:, None] - x) ** 2), axis=1)


@program(RANDOM.random(60))
def basis_functions(p):
    times, (centers, widths, weights) = np.linspace(0.0, 1.0, 300), anp.split(p, 3)
    return anp.sum(weights * anp.exp(-(((times[:, None] - centers) / (widths + 0.1)) ** 2)), axis=1)


@program(RANDOM.random(100))
def pairwise_forces(x):
    d = x[:, None] - x
    return anp.sum(d / (d**2 + 0.1) ** 1.5, axis=1)


@program(RANDOM.standard_normal(15))
def softmax_residuals(w):
    """Give the log probabilities of 200 labels."""
    scores = FEATURES @ anp.reshape(w, (5, 3))
    return (scores - logsumexp(scores, axis=1, keepdims=True))[np.arange(200), LABELS]


FEATURES, LABELS = RANDOM.standard_normal((200, 5)), RANDOM.integers(0, 3, 200)


@program(RANDOM.standard_normal(30))
def mixture_densities(t):
    """Evaluate the log density of ten Gaussians at 200 points."""
    mean, log_width, weight = t[:10], t[10:20], t[20:]
    points = np.linspace(-2, 2, 200)[:, None]
    parts = -0.5 * ((points - mean) / anp.exp(log_width)) ** 2 - log_width + weight - logsumexp(weight)
    return logsumexp(parts, axis=1)


@program(np.array([1.0, 2.0, 3.0, 0.5]))
def damped_oscillation(p):
    """Give the residuals of a fit to 5000 measurements."""
    t = np.linspace(0, 1, 5000)
    return p[0] * anp.exp(-p[1] * t) + p[2] * anp.cos(p[3] * t) - np.sin(t)


@program(RANDOM.random(42) + 0.1)
def markov_chain(x):
    """Take 40 steps of a chain whose matrix is normalized."""
    matrix = anp.reshape(x[:36], (6, 6))
    matrix = matrix / anp.sum(matrix, axis=1, keepdims=True)
    row, rows = x[36:] / anp.sum(x[36:]), []
    for _ in range(40):
        row = row @ matrix
        rows.append(row)
    return anp.ravel(anp.vstack(rows))


@program(RANDOM.standard_normal(60))
def attention(x):
    """Weigh values by the softmax of scores."""
    tokens = anp.reshape(x, (10, 6))
    scores = anp.einsum("id,jd->ij", tokens @ MIX, tokens @ MIX.T) / 6**0.5
    scores = anp.exp(scores - anp.max(scores, axis=1, keepdims=True))
    return anp.ravel(
        anp.einsum("ij,jd->id", scores / anp.sum(scores, axis=1, keepdims=True), anp.tanh(tokens))
    )


MIX = np.linspace(-1, 1, 36).reshape(6, 6)


@program(RANDOM.random(80) + 0.2)
def black_scholes(spot):
    """Price 80 options."""
    strike = np.linspace(0.5, 1.5, 80)
    d = (anp.log(spot / strike) + 0.02) / 0.2
    return spot * norm.cdf(d) - strike * norm.cdf(d - 0.2)


# Linear algebra, signals, numbers


@program(RANDOM.standard_normal(20) * 0.1)
def newton_steps(p):
    """Take eight Newton steps for 20 equations."""
    u = np.zeros(20)
    for _ in range(8):
        residual, matrix = NEWTON @ u + anp.sin(u) - p, NEWTON + anp.diag(anp.cos(u))
        u = u - anp.linalg.solve(matrix, residual)
    return u


NEWTON = 5 * np.eye(20) + RANDOM.standard_normal((20, 20))


@program(RANDOM.standard_normal(30))
def projection(x):
    """Build the matrix that projects onto the columns of another."""
    A = anp.reshape(x, (10, 3))
    return anp.ravel(A @ anp.linalg.inv(A.T @ A + np.eye(3)) @ A.T)


@program(RANDOM.standard_normal(20))
def eigenvalues(x):
    """Find the eigenvalues of a symmetric matrix."""
    return anp.linalg.eigh(anp.outer(x, x) + anp.diag(x**2 + np.arange(20.0)))[0]


NODES, BRANCHES = 80, 160
ENDS = np.random.default_rng(1).integers(0, NODES, (2, BRANCHES))
INCIDENCE = np.eye(NODES)[ENDS[0]] - np.eye(NODES)[ENDS[1]]


@program(np.linspace(0.5, 1.5, BRANCHES))
def node_voltages(conductances):
    """Solve a circuit for the voltages of its nodes; by all conductances."""
    currents = np.cos(np.arange(NODES))
    return anp.linalg.solve(INCIDENCE.T @ (conductances[:, None] * INCIDENCE) + 0.1 * np.eye(NODES), currents)


@program(np.linspace(0.0, 1.0, 101))
def pressures(logarithms):
    """Solve the equation of flow through porous rock on a line; by the logarithms of permeabilities."""
    k = anp.exp(logarithms)
    matrix = anp.diag(k[1:] + k[:-1]) - anp.diag(k[1:-1], 1) - anp.diag(k[1:-1], -1)
    return anp.linalg.solve(matrix, np.full(100, 1e-4))


@program(RANDOM.standard_normal(128))
def filtered_signal(x):
    """Filter in the frequency domain."""
    return anp.real(anp.fft.ifft(anp.fft.fft(x) * np.exp(-np.arange(128) / 20.0))) ** 2


@program(RANDOM.standard_normal(12) * 0.1)
def spectrum_of_an_oscillator(p):
    """Simulate an oscillator in a loop over numbers, and transform: a system and array steps by turns."""
    position, speed, track = p[0], p[1], []
    for step in range(128):
        force = -position - p[2 + step % 10] * position**3
        position, speed = position + 0.1 * speed, speed + 0.1 * force
        track.append(position)
    return anp.abs(anp.fft.fft(anp.array(track)))


@program(RANDOM.standard_normal(60) * 0.1)
def large_field(p):
    """Take steps of a field of 20000 cells: its derivatives by 60 parameters fit into no cache."""
    u = anp.tanh(WAVES @ p)
    for _ in range(4):
        u = u + 0.1 * (anp.roll(u, 1) - 2.0 * u + anp.roll(u, -1)) * anp.exp(-u * u)
    return anp.sum(anp.reshape(u, (100, 200)), axis=1)


WAVES = np.cos(np.arange(20_000 * 60)).reshape(20_000, 60)


@program(RANDOM.random(100) + 1.0)
def special_functions(x):
    """Evaluate functions of scipy.special."""
    return gammaln(x) + erf(x) * digamma(x)


@program(RANDOM.standard_normal(50))
def sorted_and_chosen(x):
    """Sort, clip and choose."""
    return anp.sort(x) * np.arange(50.0) + anp.maximum(x, 0) + anp.where(x > 0, x**2, -x)


@program(RANDOM.standard_normal(12))
def double_loop(x):
    """Sum over pairs of numbers."""
    total, sums = 0.0, []
    for i in range(12):
        for j in range(i):
            total = total + x[i] * x[j] * anp.sin(x[i] - x[j])
        sums.append(anp.tanh(x[i]) + total)
    return anp.array(sums)


# Hessians


@hessian_of("hessian_of_a_loop", RANDOM.standard_normal(20))
def rosenbrock_loop(x):
    """Add up Rosenbrock's function term by term."""
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(x.size - 1))


@hessian_of("hessian_of_arrays", RANDOM.standard_normal(50))
def rosenbrock(x):
    """Evaluate Rosenbrock's function in arrays."""
    return anp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@hessian_of("hessian_of_a_likelihood", RANDOM.standard_normal(15))
def likelihood(w):
    """Give the negative log likelihood of a multinomial regression."""
    return -anp.sum(softmax_residuals(w))


OBSERVED, OUTCOMES = RANDOM.standard_normal((3000, 12)), RANDOM.standard_normal(3000)


@hessian_of("hessian_of_a_mixture", 0.1 * RANDOM.standard_normal(27))
def mixture(p):
    """Give the negative log likelihood of a mixture of two regressions of 12 features."""
    first, second, (share, *widths) = p[:12], p[12:24], p[24:]
    weight = 1.0 / (1.0 + anp.exp(-share))
    errors = [
        (OUTCOMES - OBSERVED @ slopes) * anp.exp(-width)
        for slopes, width in zip((first, second), widths, strict=True)
    ]
    densities = [anp.exp(-0.5 * error**2 - width) for error, width in zip(errors, widths, strict=True)]
    return -anp.sum(anp.log(weight * densities[0] + (1.0 - weight) * densities[1]))


CHOSEN = RANDOM.integers(0, 3, 3000)


@hessian_of("hessian_of_choices", 0.1 * RANDOM.standard_normal(36))
def choices(p):
    """Give the negative log likelihood of a regression of choices among three by 12 features."""
    utilities = anp.exp(OBSERVED @ anp.reshape(p, (12, 3)))
    return -anp.sum(anp.log(utilities[anp.arange(3000), CHOSEN] / anp.sum(utilities, axis=1)))


GROUPS = np.arange(3000) % 150


@hessian_of("hessian_of_effects", 0.1 * np.cos(np.arange(163.0)))
def effects(p):
    """Give the joint likelihood of 150 groups' effects, their width and the slopes of 12 features."""
    linear = OBSERVED @ p[:12] + p[13:][GROUPS]
    return anp.sum(anp.logaddexp(0.0, linear) - (OUTCOMES > 0.0) * linear) + anp.sum(
        0.5 * (p[13:] * anp.exp(-p[12])) ** 2 + p[12]
    )


EXPERIMENTS = np.random.default_rng(5).standard_normal((200, 15))


@hessian_of("hessian_of_a_design", 0.2 + np.random.default_rng(6).random(200))
def design(w):
    """Give the logarithm of the determinant of the information of 200 weighted experiments."""
    return -anp.linalg.slogdet(EXPERIMENTS.T @ (w[:, None] * EXPERIMENTS))[1]


COUPLINGS = np.random.default_rng(7).standard_normal((144, 144)) / 40


@hessian_of("hessian_of_a_determinant", 2.0 + np.random.default_rng(8).random(144))
def partition_function(e):
    """Give the logarithm of the determinant of coupled modes by their energies."""
    return anp.linalg.slogdet(COUPLINGS @ COUPLINGS.T + anp.diag(e))[1]


# Sparse Jacobians


@program(RANDOM.random(1000))
def boundary_value_problem(u):
    """Give the residuals of an equation with an exponential source on a line, a sparse Jacobian."""
    u = anp.concatenate([np.zeros(1), u, np.ones(1)])
    return u[2:] - 2.0 * u[1:-1] + u[:-2] + 0.01 * anp.exp(u[1:-1])


@program(RANDOM.standard_normal(400))
def collocation(z):
    """Give the residuals of the trapezoidal rule for four species at 100 times, and an integral."""
    x = anp.reshape(z, (100, 4))
    rates = x * (1.0 - x @ RATES)
    return anp.append(anp.ravel(x[1:] - x[:-1] - 0.05 * (rates[1:] + rates[:-1])), anp.sum(x**2))


RATES = RANDOM.random((4, 4))


@hessian_of("hessian_of_long_arrays", RANDOM.standard_normal(800))
def chain_of_springs(x):
    """Add up the energies of springs between neighbors."""
    return anp.sum((1.0 - anp.cos(x[1:] - x[:-1])) + 0.1 * x[:-1] ** 4)


USERS, ITEMS, RATED = RANDOM.integers(0, 40, 600), RANDOM.integers(40, 80, 600), RANDOM.standard_normal(600)


@hessian_of("hessian_of_ratings", RANDOM.standard_normal(480))
def factorization(x):
    """Errors of a factorization of rank six at the places that are known."""
    factors = anp.reshape(x, (80, 6))
    errors = anp.sum(factors[USERS] * factors[ITEMS], axis=1) - RATED
    return anp.sum(errors**2) + 0.1 * anp.sum(x**2)


@hessian_of("hessian_of_ratings_and_biases", RANDOM.standard_normal(560))
def factorization_with_biases(x):
    """Errors of a factorization whose users and items have biases, too."""
    factors, of_users, of_items = anp.reshape(x[:480], (80, 6)), x[480:520], x[520:]
    errors = anp.sum(factors[USERS] * factors[ITEMS], axis=1) + of_users[USERS] + of_items[ITEMS - 40] - RATED
    return anp.sum(errors**2) + 0.1 * anp.sum(x**2)


@program(RANDOM.random(200))
def diffusion_by_a_matrix(u):
    """Let a substance that grows spread on a line, for 20 steps, by a matrix of second differences."""
    for _ in range(20):
        u = u + 0.1 * anp.dot(DIFFERENCES, u) + 0.01 * u * (1.0 - u)
    return u


DIFFERENCES = np.eye(200, k=1) - 2.0 * np.eye(200) + np.eye(200, k=-1)


@program(RANDOM.random(301))
def finite_elements(u):
    """Give the residuals of heat conduction on a line of elements, whose conductivity depends on the heat."""
    of_elements = anp.stack([u[:-1], u[1:]], axis=1)
    conductivity = 1.0 + 0.1 * anp.sum(of_elements, axis=1) ** 2
    flows = anp.einsum("e,ij,ej->ei", conductivity, STIFFNESS, of_elements)
    return anp.concatenate([flows[:1, 0], flows[1:, 0] + flows[:-1, 1], flows[-1:, 1]]) - 0.01


STIFFNESS = np.array([[1.0, -1.0], [-1.0, 1.0]])


@program(RANDOM.random(400))
def edges_of_an_image(pixels):
    """Measure how steep an image is, by two convolutions."""
    image = anp.reshape(pixels, (20, 20))
    across, down = (convolve(image, kernel, mode="valid") for kernel in (SOBEL, SOBEL.T))
    return anp.ravel(anp.sqrt(across**2 + down**2 + 1e-3))


SOBEL = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])


@program(np.sin(np.linspace(0.0, 6.0, 200)))
def burgers_by_gradients(u):
    """Follow a wave that steepens for ten steps, by differences of NumPy."""
    for _ in range(10):
        slope = anp.gradient(u)
        u = u - 0.1 * u * slope + 0.05 * anp.gradient(slope)
    return u


@program(RANDOM.uniform(0.5, 1.5, 120))
def reaction_network(c):
    """Give the rates of change of 120 species in 240 reactions of two educts and a product."""
    return anp.dot(STOICHIOMETRY, SPEEDS * anp.exp(anp.dot(EDUCTS, anp.log(c))))


SPEEDS, STOICHIOMETRY, EDUCTS = RANDOM.random(240), np.zeros((120, 240)), np.zeros((240, 120))
for _reaction in range(240):
    _species = RANDOM.choice(120, 3, replace=False)
    STOICHIOMETRY[_species, _reaction] = -1.0, -1.0, 1.0
    EDUCTS[_reaction, _species[:2]] = 1.0


# A narrow cut that is no frontier


@program(RANDOM.standard_normal(400))
def reconstruction(x):
    """Reconstruct values from eight numbers, and give the misfit as well."""
    code = anp.tanh(ENCODER @ anp.tanh(MIXER @ x))
    u = MIXER @ anp.tanh(DECODER @ code)
    return anp.append(u, anp.sum((x - u) ** 2))


MIXER, ENCODER, DECODER = (RANDOM.standard_normal(shape) / 20 for shape in [(400, 400), (8, 400), (400, 8)])


# Samples that share parameters


@program(RANDOM.uniform(0.1, 1.0, 101))
def radial_basis_network(theta):
    """Sum 25 bumps in three dimensions at 400 samples."""
    centers, heights, sharpness = anp.reshape(theta[:75], (25, 3)), theta[75:100], theta[100]
    distances = anp.sum((PLACES[:, None, :] - centers) ** 2, axis=2)
    return anp.exp(-sharpness * distances) @ heights


PLACES = RANDOM.random((400, 3))


@program(np.cos(np.arange(120.0)))
def charges(theta):
    """Give the potential of 40 charges at the points of a grid."""
    x, y, strength = anp.reshape(theta, (3, 40))
    distances = (GRID[0][:, :, None] - x) ** 2 + (GRID[1][:, :, None] - y) ** 2
    return (0.1 + distances) ** -0.5 @ strength


GRID = np.meshgrid(np.linspace(-1.0, 1.0, 25), np.linspace(-1.0, 1.0, 24), indexing="ij")


@program(RANDOM.standard_normal(82) * 0.5)
def neural_ode(theta):
    """Follow 100 states for 20 steps of a flow that is a network."""
    inner, outer, bias = anp.reshape(theta[:32], (2, 16)), anp.reshape(theta[32:64], (16, 2)), theta[64:80]
    states = STARTS + theta[80:]
    for _ in range(20):
        states = states + 0.05 * anp.tanh(states @ inner + bias) @ outer
    return anp.ravel(states)


STARTS = RANDOM.standard_normal((100, 2))


@program(RANDOM.standard_normal((60, 20)) * 0.1)
def quadratic_forms(factor):
    """Measure 200 samples by the metric of a factor."""
    return anp.einsum("ni,ij,nj->n", VECTORS, factor @ anp.transpose(factor), VECTORS)


VECTORS = RANDOM.standard_normal((200, 60))


@program(np.sin(np.linspace(0.0, 6.0, 80)))
def newton_for_each_step(u):
    """Let phases separate: implicit steps whose Jacobian depends on the state."""
    n = u.size
    laplace = np.eye(n, k=1) + np.eye(n, k=-1) - 2 * np.eye(n)
    for _ in range(8):
        before = u
        for _ in range(2):
            misfit = u - before - 0.1 * (laplace @ u + u - u**3)
            u = u - anp.linalg.solve(np.eye(n) - 0.1 * laplace - 0.1 * anp.diag(1 - 3 * u**2), misfit)
    return u


@program(RANDOM.uniform(0.05, 0.3, 70))
def layers_of_air(p):
    """Reflect 25 colors of light at 35 layers, and dim it on its way to each of them."""
    depths, scattered = anp.reshape(p, (2, 35, 1)) * np.linspace(0.5, 1.5, 25)
    reflected = np.zeros(25)
    for depth, part in zip(depths[::-1], scattered[::-1], strict=True):
        passed = anp.exp(-2 * depth)
        reflected = part * (1 - passed) + passed * reflected / (1 - part * reflected)
    arriving = anp.exp(-anp.cumsum(depths, axis=0))
    return anp.concatenate([reflected, anp.sum(arriving * scattered, axis=0)])


@program(0.5 * np.cos(np.arange(320.0)))
def residuals_of_waves(p):
    """Measure by how much a network of two layers misses the wave equation at 200 points."""

    def network(points):
        hidden = anp.tanh(points @ anp.reshape(p[:32], (2, 16)) + p[32:48])
        return anp.tanh(hidden @ anp.reshape(p[48:304], (16, 16))) @ p[304:]

    slopes = autograd.elementwise_grad(network)
    in_space, in_time = (
        autograd.elementwise_grad(lambda points, axis=axis: slopes(points)[:, axis])(EVENTS)[:, axis]
        for axis in (0, 1)
    )
    return in_time - in_space


EVENTS = np.cos(np.arange(400.0)).reshape(200, 2)


# Samples side by side


@program(RANDOM.standard_normal((50, 40)) * 0.3)
def classes_of_samples(states):
    """Pass 50 samples of 40 values through layers, and tell how probable each of 40 classes is."""
    for weights in MIXING:
        states = states + anp.tanh(states @ weights)
    chances = anp.exp(states - anp.max(states, axis=1, keepdims=True))
    return chances / anp.sum(chances, axis=1, keepdims=True)


MIXING = RANDOM.standard_normal((3, 40, 40)) / 20


@program(RANDOM.standard_normal((64, 12)))
def waves_in_columns(u):
    """Smooth twelve nonlinear waves, each in a column, by spectra."""
    damping = np.exp(-0.001 * np.arange(33.0)[:, None] ** 2)
    for _ in range(4):
        u = anp.fft.irfft(damping * anp.fft.rfft(u - 0.1 * u**2, axis=0), 64, axis=0)
    return u


@program(RANDOM.standard_normal((20, 30)) * 0.3)
def implicit_lines(u):
    """Let something react and diffuse along twenty lines."""
    n = u.shape[1]
    matrix = 3 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    for _ in range(5):
        u = anp.linalg.solve(matrix, (u + 0.1 * u * (1 - u)).T).T
    return u


CHANNELS = np.linspace(0.0, 10.0, 1000)


@program(np.column_stack([np.ones(30), np.linspace(0.5, 9.5, 30), np.full(30, 0.2)]).ravel())
def spectrum(p):
    """Add 30 peaks, each with its height, place and width."""
    y = 0.1 * CHANNELS
    for k in range(30):
        height, place, width = p[3 * k : 3 * k + 3]
        y = y + height / (1.0 + ((CHANNELS - place) / width) ** 2)
    return y


@program(RANDOM.standard_normal((2, 3, 10, 10)))
def features_of_images(images):
    """Filter two images of three colors each, as a layer of a convolutional network does."""
    return anp.tanh(convolve(images, FILTERS, axes=([2, 3], [2, 3]), dot_axes=([1], [1]), mode="valid"))


FILTERS = RANDOM.standard_normal((4, 3, 3, 3)) / 5


@program(RANDOM.standard_normal((100, 3, 3)))
def nearest_rotations(deformations):
    """Find the orthogonal matrices next to a hundred deformations, and how much they are stretched."""
    left, stretches, right = anp.linalg.svd(deformations, full_matrices=False)
    return anp.concatenate([anp.ravel(left @ right), anp.ravel(anp.log(stretches))])


@program(RANDOM.random(600))
def diffraction(positions):
    """Compute the intensities that 200 atoms scatter into 150 directions."""
    amplitudes = anp.sum(anp.exp(1j * (anp.reshape(positions, (200, 3)) @ DIRECTIONS)), axis=0)
    return anp.real(amplitudes * anp.conj(amplitudes))


DIRECTIONS = RANDOM.standard_normal((3, 150)) * 3


@program(RANDOM.standard_normal(48 * 48 + 2 * 48) / 7)
def recurrent_network(w):
    """Run a recurrent network of 48 cells for 60 steps; its output at each step by all weights."""
    weights, of_input, of_output = anp.reshape(w[: 48 * 48], (48, 48)), w[-96:-48], w[-48:]
    state, outputs = np.zeros(48), []
    for step in range(60):
        state = anp.tanh(weights @ state + of_input * np.sin(0.3 * step))
        outputs.append(of_output @ state)
    return anp.array(outputs)


@program(RANDOM.standard_normal((50, 60)))
def layer(weights):
    """Apply a layer of 50 cells to eight samples; outputs by weights, with zeros for those of other cells."""
    return anp.tanh(weights @ EIGHT)


EIGHT = RANDOM.standard_normal((60, 8))


@hessian_of("hessian_of_pairs", RANDOM.random(90) * 4.0)
def energy_of_pairs(positions):
    """Add up the energies of all pairs of 30 particles."""
    particles = anp.reshape(positions, (30, 3))
    squares = anp.sum((particles[:, None] - particles[None]) ** 2, axis=2) + np.eye(30)
    return 0.5 * anp.sum(anp.exp(-squares) + 1.0 / (0.5 + squares))


@program(RANDOM.random(60))
def renewals(x):
    """Let new infections depend on all earlier ones, by sums that become longer at each step."""
    infections = [x[0]]
    for step in range(1, 60):
        infections.append(x[step] + 0.5 * anp.sum(anp.array(infections[::-1]) * GENERATIONS[:step]))
    return anp.array(infections)


GENERATIONS = RANDOM.random(60) / 30


def compare(programs: Iterable[tuple[str, Program]], repeat: int) -> int:
    """Measure programs and print a table; 1 if a later call of one takes longer than autograd's."""
    print(
        f"{'program':26}{'Jacobian':>12}{'autograd':>12}{'tapesplit':>12}{'ratio':>9}{'first':>12}{'ratio':>9}"
    )
    missed = 0
    with threadpool_limits(1):
        for name, (function, point) in programs:
            theirs, ours = measure(against_autograd(function, point), repeat=repeat, budget=2.0)
            missed += ours.later > theirs.later
            print(
                f"{name:26}{f'{np.size(function(point))} x {point.size}':>12}"
                f"{milliseconds(theirs.later):>9} ms{milliseconds(ours.later):>9} ms"
                f"{theirs.later / ours.later:9.3g}"
                f"{milliseconds(ours.first):>9} ms{theirs.later / ours.first:9.3g}",
                flush=True,
            )
    return int(missed > 0)


def main() -> int:
    """Measure and report; 1 if a later call takes longer than autograd's."""
    options = asked("programs", __doc__, PROGRAMS, repeat=5)
    return compare([(name, PROGRAMS[name]) for name in options.names], options.repeat)


if __name__ == "__main__":
    sys.exit(main())
