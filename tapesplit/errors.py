"""The exceptions of tapesplit: each is also the builtin that users would catch."""

import pickle

__all__ = [
    "ArgumentIndexError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "CommandError",
    "InputTypeError",
    "MemoryLimitError",
    "MissingPackageError",
    "NestedTraceError",
    "NothingToPlanError",
    "OutputTypeError",
    "PlanMismatchError",
    "RuleError",
    "SeparatorError",
    "StaleValueError",
    "TapesplitError",
    "UnnamedPrimitiveError",
    "WrongJacobianError",
    "WrongRuleError",
]


class TapesplitError(Exception):
    """Base class of every exception that tapesplit raises on its own account."""


class ArgumentTypeError(TapesplitError, TypeError):
    """An argument of one of our functions that is of another type than it takes."""


class ArgumentValueError(TapesplitError, ValueError):
    """An argument of one of our functions that has no meaning there."""


class ArgumentIndexError(TapesplitError, IndexError):
    """An argnum beyond the arguments that are given."""


class InputTypeError(TapesplitError, TypeError):
    """An argument that a Jacobian cannot be taken with respect to."""


class OutputTypeError(TapesplitError, TypeError):
    """A function value that has no dense real Jacobian."""


class NestedTraceError(TapesplitError, TypeError):
    """Values that autograd is differentiating, or of other types, so that only autograd can go on."""


class StaleValueError(TapesplitError, TypeError):
    """A traced value that was kept from an earlier call of a function."""


class NothingToPlanError(TapesplitError, ValueError):
    """A Jacobian that is empty or zero whatever is done."""


class RuleError(TapesplitError, NotImplementedError):
    """A call of a primitive that has no usable derivative rule."""


class MemoryLimitError(TapesplitError, ValueError):
    """A memory limit that not even one direction of a sweep can keep."""


class MissingPackageError(TapesplitError, ImportError):
    """An optional package that is needed for what was asked for, and not installed."""


class UnnamedPrimitiveError(TapesplitError, pickle.PicklingError):
    """A primitive that another process could not find, in a plan that is to be pickled."""


class PlanMismatchError(TapesplitError, ValueError):
    """A plan that was made for a tape of another structure, or by another version of tapesplit."""


class CommandError(TapesplitError, ValueError):
    """A file, function or input on the command line that cannot be used."""


class SeparatorError(TapesplitError, ValueError):
    """Separators that do not cut a tape into a chain."""


class WrongJacobianError(TapesplitError, AssertionError):
    """A Jacobian that differs from autograd's, or from differences."""


class WrongRuleError(TapesplitError, AssertionError):
    """A vector rule that `check_vector_rule` finds wrong."""
