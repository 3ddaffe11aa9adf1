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
    "RecordingError",
    "RuleError",
    "SeparatorError",
    "StaleValueError",
    "TapesplitError",
    "UnnamedPrimitiveError",
    "UnwritableFileError",
    "WrongJacobianError",
    "WrongRuleError",
]


class TapesplitError(Exception):
    """Base class of all tapesplit exceptions."""


class ArgumentTypeError(TapesplitError, TypeError):
    """An argument of a tapesplit function has the wrong type."""


class ArgumentValueError(TapesplitError, ValueError):
    """An argument of a tapesplit function has an invalid value."""


class ArgumentIndexError(TapesplitError, IndexError):
    """An argnum is beyond the arguments that were given."""


class InputTypeError(TapesplitError, TypeError):
    """The function cannot be differentiated with respect to an argument of this type."""


class OutputTypeError(TapesplitError, TypeError):
    """The value of the function has no dense real Jacobian."""


class NestedTraceError(TapesplitError, TypeError):
    """The call depends on values of an outer autograd trace, or of types that only autograd can trace."""


class StaleValueError(TapesplitError, TypeError):
    """A traced value was kept from an earlier call of a function."""


class RecordingError(TapesplitError, RuntimeError):
    """Operations were recorded in part only (an interrupt, threads without the GIL), or in a deadlock."""


class NothingToPlanError(TapesplitError, ValueError):
    """The Jacobian is empty or identically zero."""


class RuleError(TapesplitError, NotImplementedError):
    """A call of a primitive has no usable derivative rule."""


class MemoryLimitError(TapesplitError, ValueError):
    """The memory limit is too small for even one direction of a sweep."""


class MissingPackageError(TapesplitError, ImportError):
    """An optional package that is needed here is not installed."""


class UnwritableFileError(TapesplitError, OSError):
    """A file cannot be written: there is no such folder, it is a folder itself, or there is no permission."""


class UnnamedPrimitiveError(TapesplitError, pickle.PicklingError):
    """A plan cannot be pickled: another process could not find one of its primitives by name."""


class PlanMismatchError(TapesplitError, ValueError):
    """A plan was made for a tape of another structure, or by another version of tapesplit."""


class CommandError(TapesplitError, ValueError):
    """A file, function or input on the command line cannot be used."""


class SeparatorError(TapesplitError, ValueError):
    """Separators do not cut a tape into a chain."""


class WrongJacobianError(TapesplitError, AssertionError):
    """A Jacobian differs from that of autograd, or from finite differences."""


class WrongRuleError(TapesplitError, AssertionError):
    """A vector rule fails `check_vector_rule`."""
