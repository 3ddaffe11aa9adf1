"""The calls that vector rules of SciPy's functions are checked on; see `rule_cases`."""

import numpy as np
from autograd.scipy import linalg, signal, special
from autograd.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t
from rule_cases import NUMBER, ROTATION, beyond, positive, real, regular, spd

CASES = []


def cases(primitives, *calls, **kwargs):
    for primitive in primitives if isinstance(primitives, tuple) else (primitives,):
        CASES.extend((primitive, args, kwargs) for args in calls)


SMOOTH = (
    special.gamma,
    special.gammaln,
    special.rgamma,
    special.psi,
    special.digamma,
    special.j0,
    special.y0,
    special.j1,
    special.y1,
    special.i0,
    special.i1,
    special.erf,
    special.erfc,
    special.erfinv,
    special.erfcinv,
    special.logit,
    special.expit,
    special.gammasgn,
)
cases(SMOOTH, (positive(2, 3),), (NUMBER,), (positive(0),))
cases(
    (special.polygamma, special.jn, special.yn, special.iv, special.ive),
    (1, positive(2, 3)),
    (2, NUMBER),
    (np.array([1, 2, 3]), positive(3)),
)
cases((special.gammainc, special.gammaincc), (0.5, positive(3)), (positive(3), positive(2, 3)))
cases((special.beta, special.betaln), (positive(3), positive(2, 3)), (NUMBER, 2.0))
cases(special.multigammaln, (positive(3) + 2, 3), (NUMBER + 1, 2), (positive(2, 3) + 2, 1), (positive(0), 2))
cases(special.betainc, (positive(3), 0.5, positive(3)), (0.5, 1.5, NUMBER))
cases(
    special.logsumexp,
    (real(3, 4),),
    (real(3, 4), 0),
    (real(3, 4), -1),
    (real(2, 3, 4), (0, 2)),
    (real(4),),
    (real(1, 3), 0),
)
cases(special.logsumexp, (real(3, 4),), axis=1, keepdims=True)
cases(special.logsumexp, (real(3, 4),), axis=0, b=2.0)

for primitive in (norm.pdf, norm.cdf, norm.sf, norm.logpdf, norm.logcdf, norm.logsf):
    cases(
        primitive,
        (real(3),),
        (real(2, 3), real(3)),
        (real(3), real(3), positive(3)),
        (NUMBER, 0.5, NUMBER),
        (real(3), real(2, 1), positive(1)),
    )
    cases(primitive, (real(3),), loc=0.5, scale=2.0)
for primitive in (t.pdf, t.logpdf, t.cdf, t.logcdf):
    cases(
        primitive,
        (real(3), 4.0),
        (real(3), positive(3) + 2, real(3), positive(3)),
        (real(2, 3), 3.0, real(3), 0.5),
        (NUMBER, 2.0),
    )
    cases(primitive, (real(3), 4.0), loc=0.5, scale=2.0)
for primitive in (gamma.pdf, gamma.logpdf, gamma.cdf):
    cases(primitive, (positive(3), positive(2, 3)), (NUMBER, 2.0))
for primitive in (beta.pdf, beta.logpdf, beta.cdf):
    cases(
        primitive,
        (positive(3), positive(3) + 1, positive(3) + 2),
        (positive(2, 3), 2.0, positive(3)),
        (NUMBER, 2.0, 3.0),
    )
for primitive in (chi2.pdf, chi2.logpdf, chi2.cdf):
    cases(
        primitive, (positive(3), 4), (positive(2, 3), np.array([1, 2, 3])), (NUMBER, 3.0), (positive(2), 2.5)
    )
for primitive in (poisson.pmf, poisson.logpmf, poisson.cdf):
    cases(primitive, (2, positive(3)), (np.array([1, 2, 3]), positive(2, 3)), (3, NUMBER))

SHARES = positive(4)
cases((dirichlet.pdf, dirichlet.logpdf), (SHARES / SHARES.sum(), positive(4) + 1), (np.ones(1), positive(1)))
for primitive in (multivariate_normal.pdf, multivariate_normal.logpdf):
    cases(
        primitive,
        (real(3), real(3), spd(3, 3)),
        (real(5, 3), real(3), spd(3, 3)),
        (real(1, 3), real(3), spd(3, 3)),
        (real(1), real(1), spd(1, 1)),
        (real(5, 3), real(3), np.eye(3)),
    )
    cases(primitive, (real(5, 3), real(3), np.diag([2, 1, 3])), allow_singular=True)
cases(multivariate_normal.entropy, (np.zeros(3), spd(3, 3)), (real(1), spd(1, 1)))

LOWER = np.tril(regular(4, 4))
for trans in (0, 1, "N", "T"):
    for lower, a in ((True, LOWER), (False, LOWER.T.copy())):
        cases(linalg.solve_triangular, (a, real(4)), (a, real(4, 2)), trans=trans, lower=lower)
cases(linalg.solve_triangular, (LOWER.T + 1.0, real(4)))
for lower, upper in ((1, 1), (0, 2), (2, 0), (2, 1), (0, 0)):
    BANDS = real(lower + upper + 1, 5) + 4.0 * (np.arange(lower + upper + 1) == upper)[:, None]
    cases(linalg.solve_banded, (np.array([lower, upper]), BANDS, real(5)))
cases(linalg.solve_triangular, (LOWER, real(4, 2)), lower=True, check_finite=False)
cases(linalg.solve_triangular, (LOWER, real(4, 2)), lower=True, overwrite_b=False)  # takes the loop
cases(linalg.sqrtm, (spd(4, 4),), (regular(4, 4),), (spd(1, 1),), (ROTATION,))
beyond(linalg.sqrtm, regular(3, 3) + 0.1j * real(3, 3))  # wrong: no conjugates
cases(
    linalg.solve_sylvester,
    (regular(3, 3), regular(4, 4), real(3, 4)),
    (ROTATION, np.eye(2), real(2, 2)),
    (regular(1, 1), regular(3, 3), real(1, 3)),
    (np.diag([1.0, -1.0]), np.diag([1.0, 0.5]), np.array([[1.0, 2.0], [0.0, 1.0]])),  # takes the loop
    (regular(2, 2) + 0.3j, regular(3, 3) + 0.1j, real(2, 3)),
)
for mode in ("full", "valid", "same"):
    cases(signal.convolve, (real(6), real(3)), (real(5, 4), real(3, 2)), (real(4), real(4)), mode=mode)
    cases(signal.convolve, (real(2, 5), real(3, 4)), axes=([1], [1]), mode=mode)
    cases(signal.convolve, (real(2, 5), real(2, 3)), axes=([1], [1]), dot_axes=([0], [0]), mode=mode)
    cases(
        signal.convolve,
        (real(2, 3, 6, 5), real(4, 3, 2, 3)),  # images, filters
        (real(1, 1, 4, 4), real(1, 1, 1, 1)),
        (real(0, 3, 5, 5), real(2, 3, 2, 2)),
        (real(2, 0, 5, 5), real(2, 0, 2, 2)),
        axes=([2, 3], [2, 3]),
        dot_axes=([1], [1]),
        mode=mode,
    )
    cases(signal.convolve, (real(6),), B=real(3), mode=mode)
for mode in ("full", "valid"):
    cases(signal.convolve, (real(3), real(6)), (real(2, 3), real(4, 5)), mode=mode)
    cases(signal.convolve, (real(3, 2, 5), real(2, 4, 7)), axes=([2], [2]), dot_axes=([1], [0]), mode=mode)
    cases(signal.convolve, (real(2, 3, 6), real(3, 4, 2)), axes=([2], [2]), dot_axes=([1], [0]), mode=mode)
cases(signal.convolve, (real(3, 30), real(8, 1)), mode="same")
cases(signal.convolve, (real(6, 4), real(3, 5)), axes=([0, 1], [0, 1]), mode="full")
