"""Vector rules of users: what `defvector` is given, and whether it can be a rule."""

from collections.abc import Callable, Iterable
from numbers import Number
from typing import Any

import numpy as np

from tapesplit.errors import ArgumentTypeError
from tapesplit.names import display_name, is_primitive
from tapesplit.recording.argnums import check_function
from tapesplit.recording.stand_ins import own_function
from tapesplit.rules.registry import (
    Bulk,
    Elementwise,
    Partial,
    Primitive,
    VectorFunction,
    numbered,
    register_users,
)

__all__ = ["defvector"]


def defvector(
    primitive: Primitive,
    *partials: Partial | float | None,
    tangents: Iterable[VectorFunction | None] = (),
    adjoints: Iterable[VectorFunction | None] = (),
    edges: Callable[..., int] | None = None,
) -> None:
    """Register vector rules for a primitive, in the style of ``autograd.extend.defvjp``.

    Give either the partial derivatives of an elementwise primitive, or functions that carry all directions
    through.

    Parameters
    ----------
    primitive
        A function decorated with ``autograd.extend.primitive``.
    *partials
        For an elementwise primitive: ``partial(ans, *args, **kwargs)`` for each argument, broadcasting to the
        shape of ``ans``; or a number, if the derivative is the same everywhere. None for an argument without
        influence.
    tangents
        ``tangent(T, ans, *args, **kwargs)`` for each argument: ``(k, *arg.shape)`` to ``(k, *ans.shape)``.
    adjoints
        ``adjoint(A, ans, *args, **kwargs)`` for each argument: ``(k, *ans.shape)`` to ``(k, *arg.shape)``.
    edges
        ``edges(ans, args, argnums, kwargs)``: number of scalar edges |E| of one call, an integer: fma per
        direction.

    Raises
    ------
    ArgumentTypeError
        If neither or both kinds of rule are given, or something that can be no rule, or if the function is no
        primitive of autograd's.

    Notes
    -----
    An argument that has only one of the two functions takes the loop over autograd's own rule in the other
    mode. Redefining the VJP of the primitive disables the vector rule until it is registered again.
    Check a rule with `tapesplit.check_vector_rule`.

    Examples
    --------
    >>> import numpy as np
    >>> from autograd.extend import primitive, defvjp
    >>> import tapesplit
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> tapesplit.defvector(cube, lambda ans, x: 3 * x**2)
    >>> tapesplit.parallel_jacobian(cube)(np.array([1.0, 2.0]))
    array([[ 3.,  0.],
           [ 0., 12.]])

    The product with a sparse matrix, which autograd does not trace:

    >>> import scipy.sparse
    >>> A = scipy.sparse.diags([1.0, -1.0], [0, 1], (2, 3), format="csr")
    >>> product = primitive(lambda x: A @ x)
    >>> defvjp(product, lambda ans, x: lambda g: A.T @ g)
    >>> tapesplit.defvector(
    ...     product,
    ...     tangents=(lambda T, ans, x: (A @ T.T).T,),
    ...     adjoints=(lambda G, ans, x: (A.T @ G.T).T,),
    ...     edges=lambda ans, args, argnums, kwargs: A.nnz,
    ... )
    >>> tapesplit.parallel_jacobian(product)(np.ones(3))
    array([[ 1., -1.,  0.],
           [ 0.,  1., -1.]])
    """
    primitive = own_function(primitive)
    if not is_primitive(primitive):
        raise ArgumentTypeError(
            f"defvector needs an autograd primitive, but got {primitive!r:.60}, whose rule would never be "
            "used; decorate it with autograd.extend.primitive, or give the function of autograd.numpy"
        )
    name = display_name(primitive)
    all_tangents = _checked(tangents, f"defvector({name}, tangents=…)")
    all_adjoints = _checked(adjoints, f"defvector({name}, adjoints=…)")
    tangent_map, adjoint_map = numbered(all_tangents), numbered(all_adjoints)
    if all_tangents + all_adjoints if partials else not (tangent_map or adjoint_map):
        raise ArgumentTypeError(
            f"defvector({name}, …) needs either partial derivatives (an elementwise primitive) or tangents= "
            "and adjoints= (any other); got " + ("both" if partials else "neither")
        )
    for partial in partials:
        if not (partial is None or callable(partial) or isinstance(partial, Number)):
            raise ArgumentTypeError(
                f"defvector({name}, …) takes a function, a number or None for each argument, but got "
                f"{partial!r:.60}; write lambda ans, *args: …"
            )
    if edges is not None:
        check_function(edges, f"defvector({name}, edges=…)", "lambda ans, args, argnums, kwargs: …")
    by_partials = Elementwise(tuple(map(_inexact, partials)))
    register_users(primitive, by_partials if partials else Bulk(tangent_map, adjoint_map, edges))


def _inexact(partial: Any) -> Any:
    """Return a constant partial in floating point, where no product wraps around; 1 and -1 stay integers."""
    if not isinstance(partial, Number):
        return partial
    number: Any = partial
    if isinstance(number, (complex, np.complexfloating)):
        return complex(number)
    return int(number) if number in {1, -1} else float(number)


def _checked(functions: Iterable[VectorFunction | None], what: str) -> tuple[VectorFunction | None, ...]:
    """Return what a user has given as functions; refuse anything else."""
    if callable(functions) or not isinstance(functions, Iterable):
        raise ArgumentTypeError(
            f"{what} needs a sequence with a function or None for each argument, but got {functions!r:.60}; "
            "write [f] for one argument"
        )
    given = tuple(functions)
    for argnum, function in numbered(given).items():
        if not callable(function):
            raise ArgumentTypeError(
                f"{what} needs a function or None for each argument, but got {function!r:.60} for argument "
                f"{argnum}"
            )
    return given
