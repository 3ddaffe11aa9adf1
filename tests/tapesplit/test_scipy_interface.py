"""Value and Jacobian for optimizers: what these write into their arrays does no harm."""

import autograd.numpy as np
import numpy as onp

from tapesplit import fun_and_jac


def test_values_can_be_written_to():
    value, jacobian = fun_and_jac(np.exp)
    x = onp.array([0.0, 1.0])
    for _ in range(2):
        found = value(x)
        onp.testing.assert_array_equal(found, onp.exp(x))
        found *= 0.0
        onp.testing.assert_array_equal(jacobian(x), onp.diag(onp.exp(x)))
