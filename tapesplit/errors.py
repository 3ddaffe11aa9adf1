"""The exceptions of tapesplit: each is also the builtin that users would catch."""

__all__ = [
    "InputTypeError",
    "OutputTypeError",
    "PlanMismatchError",
    "RuleError",
    "SeparatorError",
    "TapesplitError",
]


class TapesplitError(Exception):
    """Base class of every exception that tapesplit raises on its own account."""


class InputTypeError(TapesplitError, TypeError):
    """An argument that a Jacobian cannot be taken with respect to."""


class OutputTypeError(TapesplitError, TypeError):
    """A function value that has no dense real Jacobian."""


class RuleError(TapesplitError, NotImplementedError):
    """A primitive without a usable derivative rule."""


class PlanMismatchError(TapesplitError, ValueError):
    """A plan that was made for a tape of another structure."""


class SeparatorError(TapesplitError, ValueError):
    """Separators that do not cut a tape into a chain."""
