"""Nonlinear least squares: the Thurber problem of NIST's Statistical Reference Datasets.

A rational function with seven parameters is fitted to 37 measurements of electron mobility against the
logarithm of density. NIST rates the problem as hard and certifies the answer to eleven digits. Here
``scipy.optimize.least_squares`` finds it from the farther of the two official starting points, with the
exact Jacobian instead of its own finite differences.

Run it in the repository, since it imports the file pictures.py beside it:

    python examples/nist_least_squares.py

Look at the digits that agree with the certified values, with exact derivatives and with differences.

Data and certified values: https://www.itl.nist.gov/div898/strd/nls/data/thurber.shtml (public domain).
"""

import numpy as onp
from pictures import picture
from scipy.optimize import least_squares

from tapesplit import parallel_jacobian

MOBILITY, LOG_DENSITY = onp.array([
    (80.574, -3.067), (84.248, -2.981), (87.264, -2.921), (87.195, -2.912), (89.076, -2.840),
    (89.608, -2.797), (89.868, -2.702), (90.101, -2.699), (92.405, -2.633), (95.854, -2.481),
    (100.696, -2.363), (101.060, -2.322), (401.672, -1.501), (390.724, -1.460), (567.534, -1.274),
    (635.316, -1.212), (733.054, -1.100), (759.087, -1.046), (894.206, -0.915), (990.785, -0.714),
    (1090.109, -0.566), (1080.914, -0.545), (1122.643, -0.400), (1178.351, -0.309), (1260.531, -0.109),
    (1273.514, -0.103), (1288.339, 0.010), (1327.543, 0.119), (1353.863, 0.377), (1414.509, 0.790),
    (1425.208, 0.963), (1421.384, 1.006), (1442.962, 1.115), (1464.350, 1.572), (1468.705, 1.841),
    (1447.894, 2.047), (1457.628, 2.200),
]).T  # fmt: skip

START = onp.array([1000.0, 1000.0, 400.0, 40.0, 0.7, 0.3, 0.03])
CERTIFIED = onp.array(
    [1288.1396800, 1491.0792535, 583.23836877, 75.416644291, 0.96629502864, 0.39797285797, 0.049727297349]
)
CERTIFIED_SUM = 5642.7082397


def mobility(b, x):
    """Return a cubic over a cubic."""
    return (b[0] + x * (b[1] + x * (b[2] + x * b[3]))) / (1 + x * (b[4] + x * (b[5] + x * b[6])))


def residuals(b):
    return mobility(b, LOG_DENSITY) - MOBILITY


def fit(jac):
    """Fit with the given derivatives."""
    return least_squares(residuals, START, jac=jac, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15)


def digits(found):
    """How many digits of every parameter agree with the certified value."""
    error = onp.abs(found - CERTIFIED) / onp.abs(CERTIFIED)
    return -onp.log10(onp.maximum(error, 1e-11)).min()


def draw(found):
    def on(fitted, rest):
        x = onp.linspace(LOG_DENSITY.min(), LOG_DENSITY.max(), 300)
        fitted.plot(x, mobility(START, x), "--", color="gray", label="start")
        fitted.plot(x, mobility(found, x), label="fit")
        fitted.plot(LOG_DENSITY, MOBILITY, ".", color="black", label="measured")
        fitted.set(xlabel="log density", ylabel="electron mobility", title="Thurber")
        fitted.legend(frameon=False)
        rest.axhline(0, color="gray", linewidth=1)
        rest.plot(LOG_DENSITY, residuals(found), ".", color="black")
        rest.set(xlabel="log density", ylabel="residual", title="fit minus measurement")

    return on


def main():
    exact = fit(parallel_jacobian(residuals))
    differences = fit("2-point")
    total = float(onp.sum(exact.fun**2))
    for name, certified, found in zip("1234567", CERTIFIED, exact.x, strict=True):
        print(f"b{name}   certified {certified:<16.11g} found {found:.11g}")
    print(f"sum  certified {CERTIFIED_SUM:<16.11g} found {total:.11g}")
    print(
        f"digits       {digits(exact.x):.1f} with the Jacobian, {digits(differences.x):.1f} with differences"
    )
    print(f"evaluations  {exact.nfev} of the residuals, {exact.njev} of the Jacobian")
    assert digits(exact.x) > 7
    assert abs(total / CERTIFIED_SUM - 1) < 1e-9
    picture("nist_least_squares", draw(exact.x), panels=2)


if __name__ == "__main__":
    main()
