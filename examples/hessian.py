"""Hessians: Newton's method and standard errors for a logistic regression.

The Hessian is the Jacobian of the gradient, ``parallel_jacobian(grad(f))``. At the best parameters its
inverse is their covariance, so one more Hessian tells how sure the fit is.

Run it in the repository, since it imports the file pictures.py beside it:

    python examples/hessian.py [features] [samples]

Look at the gradient, which loses all its digits within a few iterations, and at the true parameters: about
two of three lie within one standard error.
"""

import sys

import autograd.numpy as np
import numpy as onp
from autograd import grad
from pictures import picture

from tapesplit import parallel_jacobian


def make_loss(features, samples, random):
    """Return the negative log-likelihood of random data, the data, and the parameters that they came from."""
    X = random.standard_normal((samples, features)) @ (onp.eye(features) + 0.3)
    truth = random.standard_normal(features) / onp.sqrt(features)
    labels = onp.where(random.uniform(size=samples) < 1 / (1 + onp.exp(-X @ truth)), 1.0, -1.0)

    def loss(w):
        return np.sum(np.logaddexp(0.0, -labels * (X @ w)))

    return loss, X, truth


def analytic_hessian(X, w):
    """Differentiated by hand."""
    p = 1 / (1 + onp.exp(-X @ w))
    return X.T @ ((p * (1 - p))[:, None] * X)


def newton(hessian, w):
    """Minimize; return the parameters and the largest entry of every gradient."""
    history = []
    for _ in range(20):
        g, H = hessian.value_and_jacobian(w)
        history.append(float(onp.abs(g).max()))
        if history[-1] < 1e-10:
            break
        w = w - onp.linalg.solve(H, g)
    return w, history


def draw(w, truth, errors, history):
    def on(fit, descent):
        fit.errorbar(truth, w, errors, fmt=".", label="fit and its standard error")
        fit.axline((0, 0), slope=1, color="gray", linewidth=1, label="a perfect fit")
        fit.set(xlabel="true parameter", ylabel="fitted parameter", title="logistic regression")
        fit.legend(frameon=False, loc="lower right")
        descent.semilogy(history, "o-")
        descent.set(xlabel="Newton iteration", ylabel="largest entry of the gradient", title="convergence")

    return on


def main(features=40, samples=2000):
    loss, X, truth = make_loss(features, samples, onp.random.default_rng(6))
    hessian = parallel_jacobian(grad(loss))
    w, history = newton(hessian, onp.zeros(features))
    H, by_hand = hessian(w), analytic_hessian(X, w)
    errors = onp.sqrt(onp.diag(onp.linalg.inv(H)))
    difference = float(onp.abs(H - by_hand).max() / onp.abs(by_hand).max())
    within = float(onp.mean(onp.abs(w - truth) < errors))
    print(f"gradients    {', '.join(f'{g:.0e}' for g in history)}")
    print(f"Hessian      {features} × {features}, {difference:.0e} from the one by hand")
    print(f"parameters   {100 * within:.0f} % of the true ones lie within one standard error")
    assert history[-1] < 1e-10
    assert difference < 1e-12
    assert onp.all(onp.abs(w - truth) < 5 * errors)
    picture("hessian", draw(w, truth, errors, history), panels=2)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
