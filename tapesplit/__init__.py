"""Full Jacobians for autograd code by scheduled Jacobian chaining."""
