"""Jacobian chain dynamic programming: plan the cheapest way to a chain of Jacobians."""
