"""The exceptions of jcdp_core: one base class, and the builtin class that a caller would expect."""

__all__ = [
    "ArgumentTypeError",
    "ConfigError",
    "InfeasibleError",
    "InvalidChainError",
    "InvalidOperationError",
    "InvalidScheduleError",
    "InvalidSequenceError",
    "JcdpError",
    "ResultsError",
    "SolverError",
]


class JcdpError(Exception):
    """Base class of all jcdp_core exceptions."""


class ArgumentTypeError(JcdpError, TypeError):
    """An argument has the wrong type."""


class InvalidChainError(JcdpError, ValueError):
    """The links do not form a Jacobian chain, or one of their numbers is not a positive integer."""


class InvalidOperationError(JcdpError, ValueError):
    """A step is malformed: an unknown word, a wrong number of positions, or positions out of order."""


class InvalidSequenceError(JcdpError, ValueError):
    """A list of steps does not compute the Jacobian of the chain, or breaks a constraint."""


class InvalidScheduleError(JcdpError, ValueError):
    """A schedule breaks precedence, overloads a machine, or uses one that is not there."""


class InfeasibleError(JcdpError, ValueError):
    """No elimination sequence satisfies the constraints; the message names the link and the reason."""


class ConfigError(JcdpError, ValueError):
    """A setting is malformed; the message names it, after `file:line:` if it was read from a file."""


class ResultsError(JcdpError, ValueError):
    """A results file is malformed or belongs to other settings; the message starts with the file's name."""


class SolverError(JcdpError, ValueError):
    """A solver or scheduler does not support what was asked for, or a process of a batch died."""
