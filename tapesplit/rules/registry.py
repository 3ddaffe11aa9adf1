"""The registry of vector rules: how each primitive carries many directions at once.

autograd's own rules carry one direction; stacked directions go through them wrongly, often silently. A vector
rule takes directions stacked along a new first axis: tangents ``T`` of shape ``(k, *arg.shape)`` to ``(k,
*ans.shape)``, adjoints ``A`` of shape ``(k, *ans.shape)`` to ``(k, *arg.shape)``. Values that are no arrays
(tuples, dicts) have their elements in one axis, leaves in order.

A rule is one of three kinds; primitives without one are carried by the loop of `tapesplit.rules.loop`.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard

import numpy as np
from autograd.core import primitive_vjps

from tapesplit.errors import RuleError
from tapesplit.names import display_name
from tapesplit.recording.overrides import is_overridden, keep_calls
from tapesplit.recording.values import element_count

__all__ = [
    "UNDEFINED",
    "Bulk",
    "Elementwise",
    "Held",
    "Movement",
    "Partial",
    "Primitive",
    "Rule",
    "Undefined",
    "VectorFunction",
    "Weighing",
    "bulk",
    "count_edges",
    "elementwise",
    "find_rule",
    "is_elementwise_call",
    "is_replaced",
    "movement",
    "no_edges",
    "numbered",
    "register_users",
    "registered",
    "rules_defined",
    "rules_on_demand",
]

Primitive: TypeAlias = Callable[..., Any]
Partial: TypeAlias = Callable[..., Any]
VectorFunction: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Each element of the result depends on one element of each (broadcast) argument.

    ``partials[i](ans, *args, **kwargs)`` is the derivative by argument i, of a shape that broadcasts to that
    of the result; the numbers 1 and -1 are taken as such and cost nothing. None means that the derivative is
    zero. ``built_in`` says that the rule is one of ours: double precision in is double precision out,
    whatever the values, and formulas may be called on many calls at once, with all operands as arrays of
    floating-point numbers. A primitive of the user's may return complex numbers for some values, and its
    formulas may ask for the type, the sign or the shape of what they are given. ``pace`` is how many times as
    long as a simple formula, such as ``-1 / x**2``, a partial takes for an element, roughly.
    """

    partials: tuple[Partial | float | None, ...]
    built_in: bool = False
    pace: int = 1


@dataclass(frozen=True, slots=True)
class Movement:
    """The result's elements are elements of the arguments, or constants, whatever the values are."""


class Weighing(NamedTuple):
    """How a call sums one argument along axes, with weights; for a product they are its other argument."""

    argnum: int
    axes: tuple[int, ...]
    weights: Any


class Held(NamedTuple):
    """Numbers that a rule holds while it runs: for ``each`` direction, and ``shared`` by all of them."""

    each: int
    shared: int


@dataclass(frozen=True, slots=True)
class Bulk:
    """Any other primitive, with functions that carry all directions at once.

    ``tangents[i](T, ans, *args, **kwargs)`` and ``adjoints[i](A, ans, *args, **kwargs)`` belong to argument
    i. None means that this argument takes the loop, and so does a function that returns NotImplemented for a
    form of its arguments that it does not cover. ``edges(ans, args, argnums, kwargs)`` is the number of
    scalar edges |E|; by default each element of the result depends on each element of the active arguments.
    ``built_in`` says that the rule is one of ours: directions of lists come in the shape of the arrays that
    NumPy makes of them, not as rows of all elements, and those of products are new arrays.
    Three numbers predict the time of a call. For each active argument it takes as long as one elementwise
    operation and ``steps`` more. A scalar edge takes as long as ``pace`` multiply-adds in a product of
    matrices. Factorizing the first argument, a matrix, takes ``cubic`` times the cube of its size, once for
    all directions.
    ``held(args, argnum, adjoint_mode=...)`` counts what directions through argument ``argnum`` hold besides
    what is read and returned, see `Held`; by default nothing in sums and products, and in other functions as
    many numbers as the larger of these has.
    ``approximate`` says that derivatives are found up to a tolerance only, as those of autograd's rule are.
    ``weigh(ans, *args, **kwargs)`` tells how a call sums along axes, with weights that broadcast to what is
    summed; None for a form of the arguments that it does not cover.
    """

    tangents: Mapping[int, VectorFunction] = field(default_factory=dict)
    adjoints: Mapping[int, VectorFunction] = field(default_factory=dict)
    edges: Callable[..., int] | None = None
    built_in: bool = False
    steps: int = 0
    pace: int = 1
    cubic: int = 0
    held: Callable[..., Held] | None = None
    weigh: Callable[..., Weighing | None] | None = None
    approximate: bool = False


@dataclass(frozen=True, slots=True)
class Undefined:
    """Stand-in for the partial derivative by an argument that autograd cannot differentiate by."""

    primitive: Primitive | None = None
    argnum: int = 0

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Raise an error that says so."""
        raise RuleError(
            f"autograd has no derivative of {display_name(self.primitive)} with respect to argument "
            f"{self.argnum} (such as the order of a Bessel function or the degrees of freedom of a cdf); "
            "keep it constant, or define the derivative with autograd.extend.defvjp"
        )


UNDEFINED: Final = Undefined()
"""What rules give for such an argument."""

Rule: TypeAlias = Elementwise | Movement | Bulk

_rules: dict[Any, Rule] = {}
_users: dict[Primitive, Any] = {}
"""Primitives with a rule of the user, and the VJP that it stands for; None until the primitive has one."""
_defined = 0
_pending: dict[str, str] = {}


def find_rule(primitive: Primitive | None) -> Rule | None:
    """Return the vector rule of a primitive, None for an input, or if it takes the loop over autograd's rule.

    A rule no longer counts once the user has replaced the VJP of the primitive.
    """
    rule = _rules.get(primitive)
    if rule is None:
        _load_pending()
        rule = _rules.get(primitive)  # even if nothing was pending: another thread may just have loaded it
    return None if is_replaced(primitive) else rule


def is_replaced(primitive: Primitive | None) -> bool:
    """Tell whether a user has replaced the VJP of a primitive since its vector rule was registered."""
    if primitive not in _users:
        return primitive in _rules and is_overridden(primitive)
    vjp = primitive_vjps.get(primitive)
    if _users[primitive] is None:
        _users[primitive] = vjp
    return vjp is not _users[primitive]


def rules_on_demand(host: str, module: str) -> None:
    """Import a module of rules once its host, whose primitives it registers, has been imported by others."""
    _pending[host] = module


def _load_pending() -> None:
    """Import the rules of hosts that have been imported since; other threads may do the same."""
    for host, module in tuple(_pending.items()):
        if host in sys.modules:
            import_module(module)
            _pending.pop(host, None)


def registered() -> Mapping[Primitive, Rule]:
    """Return all rules, by primitive."""
    _load_pending()
    return dict(_rules)


def elementwise(primitive: Primitive, *partials: Partial | float | None, pace: int = 1) -> None:
    """Register an elementwise primitive by its partial derivatives, one for each argument."""
    named = [
        Undefined(primitive, argnum) if partial is UNDEFINED else partial
        for argnum, partial in enumerate(partials)
    ]
    _rules[primitive] = Elementwise(tuple(named), built_in=True, pace=pace)


def is_elementwise_call(
    rule: Rule | None, argnums: tuple[int, ...], arity: int, kwargs: Collection[str]
) -> TypeGuard[Elementwise]:
    """Tell whether a call is covered by partials: there is one for each active argument, for its keywords.

    An option that a formula does not take may change the result (``where``, ``dtype``, an array for the
    result). Calls with such a keyword take autograd's rule; if it is given by position, the formula raises.
    """
    if not isinstance(rule, Elementwise) or max(argnums, default=0) >= len(rule.partials):
        return False
    if arity > len(rule.partials) and rule.built_in and not all(callable(rule.partials[i]) for i in argnums):
        return False  # a number would not raise, as formulas and autograd's rule do
    return not kwargs or all(_knows(rule.partials[argnum], kwargs) for argnum in argnums)


_HARMLESS: Final = frozenset({"casting", "order", "subok"})
"""Keywords that do not change the numbers of a result."""


def _knows(partial: Partial | float | None, kwargs: Collection[str]) -> bool:
    """Tell whether a partial takes all keywords of a call into account."""
    if not callable(partial):
        return partial is None or _HARMLESS.issuperset(kwargs)
    parameters = signature(partial).parameters
    return set(parameters).issuperset(kwargs) or Parameter.VAR_KEYWORD in {
        p.kind for p in parameters.values()
    }


def bulk(
    primitive: Primitive,
    *,
    tangents: Iterable[VectorFunction | None],
    adjoints: Iterable[VectorFunction | None],
    **known: Any,
) -> None:
    """Register any other primitive of autograd by the functions that carry all directions.

    ``known`` are further fields of `Bulk`.
    """
    _rules[primitive] = Bulk(numbered(tangents), numbered(adjoints), built_in=True, **known)


def no_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of an operation that moves elements, or changes their type only: none."""
    return 0


def numbered(functions: Iterable[VectorFunction | None]) -> dict[int, VectorFunction]:
    """Return the functions that are not None by the argument that they belong to."""
    return {argnum: function for argnum, function in enumerate(functions) if function is not None}


def movement(*primitives: Primitive) -> None:
    """Register primitives that only move elements."""
    for primitive in primitives:
        _rules[primitive] = Movement()


def register_users(primitive: Primitive, rule: Rule) -> None:
    """Register a rule that a user has defined, for the VJP that the primitive has now."""
    global _defined  # noqa: PLW0603 (counts what happens to the registry of the process)
    _load_pending()  # later on, our own rule would replace this one
    _rules[primitive] = rule
    _users[primitive] = primitive_vjps.get(primitive)
    keep_calls(primitive)
    _defined += 1


def rules_defined() -> int:
    """Return how often a user has defined a rule: while this number is the same, no rule has changed.

    Our own rules need not be counted: they are loaded before their primitives can be on a tape.
    """
    return _defined


def count_edges(
    primitive: Primitive, ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any
) -> int:
    """Scalar edges |E| of one call: multiply-adds for each direction that goes through it.

    Raises `RuleError` if the function that a user has given for them returns something else.
    """
    rule = find_rule(primitive)
    if isinstance(rule, Movement):
        return 0
    if isinstance(rule, Elementwise):
        return element_count(ans) * sum(
            i < len(rule.partials) and rule.partials[i] is not None for i in argnums
        )
    if isinstance(rule, Bulk) and rule.edges is not None:
        found = rule.edges(ans, args, argnums, kwargs)
        if not rule.built_in and not _is_count(found):
            raise RuleError(
                f"the function edges= of {display_name(primitive)} has returned {found!r:.60} instead of an "
                f"integer from 0 to {_MOST_EDGES:.0e}; correct what tapesplit.defvector was given"
            )
        return int(found)
    return element_count(ans) * sum(element_count(args[i]) for i in argnums)


def _is_count(found: Any) -> bool:
    """Tell whether something counts edges; products of shapes may be whole numbers in floating point."""
    is_real = isinstance(found, (int, float, np.integer, np.floating))
    return is_real and 0 <= found <= _MOST_EDGES and bool(found == int(found))


_MOST_EDGES: Final = 10**15
"""More than that takes days for each direction, and sums of much more are no integers of 64 bits."""
