"""The calls that vector rules are checked on: one line for each form of the arguments.

`CASES` lists tuples ``(primitive, args, kwargs)``. A registered primitive without a line fails the suite.
`BEYOND` lists calls that autograd has no right rule for.
"""

import autograd.builtins as ab
import autograd.numpy as anp
import numpy as np
from autograd.core import VSpace, sparse_add, vspace
from autograd.numpy import fft, linalg
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_vjps import (
    dot_adjoint_0,
    dot_adjoint_1,
    tensordot_adjoint_0,
    tensordot_adjoint_1,
    untake,
)
from autograd.numpy.numpy_wrapper import _array_from_scalar_or_array, array_from_args, concatenate_args
from autograd.util import func

CASES = []
BEYOND = []


def case(primitive, *args, **kwargs):
    CASES.append((primitive, args, kwargs))


def beyond(primitive, *args, **kwargs):
    """Add a call that autograd's own rule gets wrong or refuses: differences are the reference."""
    BEYOND.append((primitive, args, kwargs))


def cases(primitives, *calls):
    """Add calls without keywords for each of several primitives."""
    for primitive in primitives if isinstance(primitives, tuple) else (primitives,):
        for args in calls:
            case(primitive, *args)


_random = np.random.default_rng(20251)


def R(*shape):
    """Random array away from 0 and ±1, of both signs."""
    return _random.uniform(0.1, 0.9, shape) * _random.choice([-1.0, 1.0], shape)


def P(*shape):
    """Random positive array, away from 0 and 1."""
    return _random.uniform(0.1, 0.9, shape)


def C(*shape):
    """Random complex array."""
    return R(*shape) + 1j * R(*shape)


def shared(primitive, *shape, complex_too=False):
    """Add a call with one array as both operands."""
    x = R(*shape)
    case(primitive, x, x)
    if complex_too:
        z = C(*shape)
        case(primitive, z, z)


NUMBER = np.float64(0.7)
WHERE = getattr(anp, "_original_where", anp.where)  # anp.where is no primitive in autograd 1.9

# ---- elementwise, two operands

for primitive in (anp.add, anp.subtract, anp.multiply, anp.divide):
    cases(
        primitive,
        (R(2, 3), R(2, 3)),
        (R(2, 3), R(3)),
        (R(3), R(2, 1)),
        (R(4, 1, 3), R(2, 1)),
        (R(3), 2.0),
        (2, R(3)),
    )
    cases(
        primitive,
        (NUMBER, NUMBER + 1),
        (NUMBER, R(2)),
        (0.5, NUMBER),
        (R(2, 0), R(0)),
        (R(1, 1), R(2, 3)),
        (1.5, 0.5),
    )
    cases(primitive, (C(2, 3), C(3)), (R(2, 3), C(3)), (C(3), R(2, 3)), (C(), R(3)))
    cases(
        primitive,
        (np.float32(R(3)), np.float32(R(3))),
        (np.float32(R(3)), 2.0),
        (R(3).astype(np.longdouble), R(3)),
    )
    shared(primitive, 3, complex_too=True)
for primitive in (anp.power, anp.arctan2, anp.hypot, anp.mod, anp.logaddexp, anp.logaddexp2):
    cases(
        primitive,
        (P(2, 3), P(3)),
        (P(3), 2.0),
        (P(3), 2),
        (0.3, P(3)),
        (NUMBER, NUMBER + 0.25),
        (P(0), P(0)),
        (P(3, 1), P(2)),
    )
    cases(primitive, (0.5, 0.75), (np.float32(P(3)), np.float32(P(3))))
cases(
    anp.power,
    (np.array([0.0, 2.0]), 2.0),
    (np.array([0.0, 2.0]), 1.0),
    (np.array([0.0, 2.0]), np.array([0.0, 3.0])),
    (C(3), 3.0),
)
cases(anp.power, (np.array([0.0, 2.0]), 0.0), (R(3), 3), (R(3), np.array([1, 2, 3])))
for primitive in (anp.maximum, anp.minimum, anp.fmax, anp.fmin):
    cases(
        primitive,
        (R(2, 3), R(3)),
        (R(3), 0.0),
        (NUMBER, NUMBER + 1),
        (np.zeros(2), np.array([0.0, 1.0])),
        (R(0), 1.0),
    )
    shared(primitive, 3)
cases(
    WHERE,
    (np.array([True, False, True]), R(3), R(3)),
    (np.array([True, False]), R(2), C(2)),
    (True, NUMBER, 2.0),
    (np.zeros(0, bool), R(0), R(0)),
)

# ---- elementwise, one operand

SMOOTH = (
    anp.negative, anp.reciprocal, anp.square, anp.exp, anp.exp2, anp.expm1, anp.sin, anp.cos, anp.tan, anp.arctan, anp.sinh,
    anp.cosh, anp.tanh, anp.arcsinh, anp.sinc, anp.arcsin, anp.arccos, anp.arctanh, anp.real, anp.imag, anp.angle,
    anp.real_if_close, anp.abs, anp.conj, anp.conjugate, anp.nan_to_num,
)  # fmt: skip
cases(SMOOTH, (R(2, 3),), (NUMBER,), (R(2, 0),), (np.float32(R(3)),), (0.5,), (C(3),))
REAL = (anp.fabs, anp.rad2deg, anp.degrees, anp.deg2rad, anp.radians)
cases(REAL, (R(2, 3),), (NUMBER,), (R(0),), (0.25,))
cases(
    (anp.log, anp.log2, anp.log10, anp.log1p, anp.sqrt),
    (P(2, 3),),
    (NUMBER,),
    (P(0),),
    (np.float32(P(3)),),
    (0.5,),
    (C(3),),
)
cases(anp.arccosh, (1.0 + P(2, 3),), (NUMBER + 1,), (C(3),))
case(anp.abs, np.array([-1.0, 0.0, 2.0]))
case(anp.abs, np.array([0.0, 1.0 + 1.0j]))
case(anp.real_if_close, np.array([1.0 + 1e-20j, 2.0]))
case(anp.nan_to_num, np.array([np.nan, np.inf, 1.0]))
cases(
    anp.clip,
    (R(5), -0.4, 0.4),
    (np.array([-1.0, 0.0, 1.0, 2.0]), 0.0, 1.0),
    (R(5), None, 0.4),
    (R(2, 3), R(3) - 1, 0.5),
    (NUMBER, 0.0, 1.0),
)
case(anp.clip, R(5), a_min=-0.4, a_max=0.4)
case(anp.clip, np.float32(R(5)), -0.4, 0.4)
cases(
    anp.astype,
    (R(3), np.float32),
    (np.float32(R(3)), np.float64),
    (R(2, 0), np.float32),
)

# ---- reductions

REDUCTIONS = (
    anp.sum,
    anp.mean.__globals__["_primitive_mean"],
    anp.prod,
    anp.max,
    anp.min,
    anp.amax,
    anp.amin,
)
SPREADS = (anp.mean.__globals__["_primitive_var"], anp.mean.__globals__["_primitive_std"])
for primitive in (*REDUCTIONS, *SPREADS):
    cases(
        primitive, (R(3, 4),), (R(3, 4), 0), (R(3, 4), -1), (R(2, 3, 4), 1), (R(5),), (R(3, 1), 1), (NUMBER,)
    )
    case(primitive, R(3, 4), axis=1, keepdims=True)
    case(primitive, R(3, 4), keepdims=True)
    case(primitive, R(2, 3, 4), axis=(0, 2))
    case(primitive, R(2, 3, 4), axis=(0, 1, 2))
    case(primitive, np.float32(R(3, 4)), axis=0)
for primitive in REDUCTIONS[:3]:
    cases(primitive, (C(3, 4), 0), (R(0, 3), 1), (R(3, 0, 2), 0))
for primitive in REDUCTIONS[3:]:
    cases(primitive, (np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), 1), (np.ones((2, 3)),), (R(0, 3), 1))
for primitive in SPREADS:
    case(primitive, R(3, 4), axis=0, ddof=1)
    case(primitive, R(3, 4), 1, ddof=1, keepdims=True)
    case(primitive, C(3, 4))
case(anp.sum, R(3), dtype=np.float64)  # keywords that no rule names take the loop
case(anp.mean.__globals__["_primitive_mean"], R(3), dtype=np.float64)
case(anp.einsum, "ij->i", R(2, 3), order="C")
cases(
    anp.cumsum,
    (R(4),),
    (R(3, 4),),
    (R(3, 4), 0),
    (R(3, 4), 1),
    (R(3, 4), -1),
    (R(2, 3, 2), 1),
    (C(3),),
    (R(0),),
)
cases(anp.trace, (R(3, 3),), (R(3, 4),), (R(3, 4), 1), (R(3, 4), -1), (C(3, 3),), (R(3, 3, 2),))
cases(anp.diff, (R(5),), (R(3, 5),), (R(3, 5), 2), (R(4, 3), 1, 0), (R(3, 5), 3), (R(5, 1),), (C(5),))
case(anp.diff, R(4, 5), n=2, axis=0)
cases((anp.sort,), (R(6),), (R(0),), (np.array([1.0, 1.0, 0.0]),))
cases((anp.partition,), (R(6), 2))
case(anp.sort, R(6), axis=0)

# ---- movements

X = R(2, 3, 4)
cases(
    anp.reshape,
    (R(2, 3), (3, 2)),
    (R(2, 3), -1),
    (R(2, 3), (1, 6, 1)),
    (NUMBER, (1, 1)),
    (R(0, 3), (3, 0)),
    (C(2, 3), 6),
)
case(anp.reshape, R(2, 3), (3, 2), order="F")
cases(anp.ravel, (R(2, 3),), (R(2, 3), "F"), (R(0),), (NUMBER,))
cases((anp.squeeze,), (R(1, 3, 1),), (R(1, 3, 1), 0), (R(1, 1),), (R(1, 3, 1), (0, 2)))
cases((anp.expand_dims,), (R(2, 3), 0), (R(2, 3), -1), (NUMBER, 0), (R(2), (0, 2)))
cases(anp.broadcast_to, (R(1, 3), (4, 3)), (R(2, 1), (2, 3)), (R(3), (3,)))
cases((anp.atleast_1d, anp.atleast_2d, anp.atleast_3d), (NUMBER,), (R(3),), (R(2, 3),), (X,))
cases(anp.transpose, (X,), (X, (1, 2, 0)), (R(3),), (C(2, 3),))
cases((anp.swapaxes, anp.moveaxis), (X, 0, 2), (X, -1, 0))
case(anp.moveaxis, X, (0, 1), (1, 2))
cases(anp.rollaxis, (X, 2), (X, 2, 1), (X, 0, 3))
cases(anp.roll, (R(5), 2), (R(5), -1), (X, 1, 1), (X, 7), (R(0), 1))
cases(anp.flip, (X,), (X, 0), (X, (0, -1)), (C(3),))
cases((anp.flipud, anp.fliplr), (R(2, 3),))
cases(anp.rot90, (R(2, 3),), (R(2, 3), 2), (R(2, 3), -1))
cases((fft.fftshift, fft.ifftshift), (R(5),), (R(2, 3),), (R(2, 3), 1), (C(4),))
for index in (
    0, -1, slice(None), slice(None, None, -1), slice(1, 2), slice(1, 1), Ellipsis, None, (), (0, 1), (0, 1, 2), (1, slice(None), -1),
    (Ellipsis, 0), (None, 0, Ellipsis, None), np.array([0, 1, 1]), [1, 0, 0], np.array([[0, 1], [1, 1]]), np.array([True, False]),
    (slice(None), np.array([0, 2, 2, 0])), (np.array([0, 1]), np.array([2, 2])), (np.array([[0], [1]]), np.array([1, 1, 2])),
    (0, slice(None), np.array([3, 3])), (np.array([0, 1]), slice(None), np.array([3, 3])), X > 0, (slice(None), X[0] > 0), np.zeros(0, int),
    (slice(None), [0, 0], slice(None, None, 2)),
):  # fmt: skip
    case(ArrayBox.__getitem__, X, index)
cases(
    ArrayBox.__getitem__,
    (NUMBER, ()),
    (R(0, 3), slice(None)),
    (C(3), [0, 0]),
    (np.float32(R(3)), slice(1, None)),
    (np.array(0.5), None),
)
cases(anp.take, (R(4), [0, 0, 3]), (X, 1), (X, [0, 2], 1))
cases(anp.repeat, (R(3), 2), (X, 2, 1), (R(3, 1), 4, 1), (R(2, 3), 2), (R(3), 0))
cases(anp.tile, (R(3), 2), (R(2, 3), (2, 1)), (R(2, 3), (2, 2)), (R(3), (2, 3)))
cases(anp.full, ((2, 3), NUMBER), (3, np.array(0.5)), (0, NUMBER))
cases(anp.diag, (R(3),), (R(3), 1), (R(3, 3),), (R(3, 3), -1))
cases(anp.diagonal, (R(3, 4),), (R(3, 4), 1), (X, 0, 1, 2), (X, 1, -1, -2))
cases(anp.make_diagonal, (R(3), 0, -1, -2), (R(2, 3), 0, -1, -2))
cases((anp.tril, anp.triu), (R(3, 3),), (R(3, 4), 1), (R(3, 4), -1), (X,))
cases(fft.truncate_pad, (R(4), (2,)), (R(4), (6,)), (C(3, 4), (5, 2)))
cases(
    concatenate_args,
    (0, R(2), R(3)),
    (0, R(2), np.ones(2), R(1)),
    (1, R(2, 3), R(2, 1)),
    (-1, R(2, 2), R(2, 0)),
    (0, R(2), C(2)),
)
cases(
    array_from_args,
    ((), {}, NUMBER, 2.0, NUMBER),
    ((), {}, R(2), R(2)),
    ((), {"ndmin": 3}, R(2)),
    ((), {"dtype": float}, NUMBER, NUMBER),
)
cases(_array_from_scalar_or_array, ((), {}, NUMBER), ((), {}, R(2, 3)), ((), {"ndmin": 3}, R(2)))
cases((anp.split, anp.array_split), (R(6), 3), (R(6), [1, 4]), (R(2, 6), 2, 1))
case(anp.array_split, R(7), 3)
cases(anp.vsplit, (R(4, 2), 2))
cases(anp.hsplit, (R(2, 4), 2))
cases(anp.dsplit, (R(1, 2, 4), [1]))
cases(
    anp.pad,
    (R(3), 1, "constant"),
    (R(2, 3), (1, 2), "constant"),
    (R(2, 3), ((1, 0), (0, 2)), "constant"),
    (R(2, 3), ((1, 2),), "constant"),
)
case(anp.pad, R(2, 0), 1, mode="constant")
cases(
    ab.container_take,
    ((R(2), R(3, 1)), 1),
    ([R(2), NUMBER], 1),
    ({"b": R(2), "a": R(3)}, "b"),
    ((R(2), R(3), R(1)), slice(1, None)),
)
cases(ab.make_sequence, (tuple, R(2), NUMBER), (list, R(2), 1.0))
cases((ab.sequence_extend_right, ab.sequence_extend_left), ((R(2),), R(3), NUMBER), ([R(2), R(1)], R(3)))
cases(ab._make_dict, (["b", "a"], [R(2), R(3)]))

# ---- products

for primitive in (anp.dot, anp.inner):
    cases(
        primitive,
        (R(3), R(3)),
        (NUMBER, R(3)),
        (R(2, 3), NUMBER),
        (NUMBER, NUMBER + 1),
        (R(0), R(0)),
    )
    shared(primitive, 3, 3, complex_too=True)
cases(
    anp.dot,
    (R(2, 3), R(3)),
    (R(3), R(3, 2)),
    (R(2, 3), R(3, 4)),
    (R(2, 3, 4), R(4)),
    (R(2, 3, 4), R(2, 4, 3)),
    (R(2, 0), R(0, 3)),
    (np.float32(R(2, 3)), np.float32(R(3))),
)
cases(
    anp.inner,
    (C(3), R(3)),
    (R(3), C(3)),
    (R(2, 3), R(3)),
    (R(3), R(2, 3)),
    (R(2, 3), R(4, 3)),
    (R(2, 4, 3), R(5, 3)),
)
cases(
    anp.matmul,
    (R(3), R(3)),
    (R(2, 3), R(3)),
    (R(3), R(3, 2)),
    (R(2, 3), R(3, 4)),
    (R(5, 2, 3), R(5, 3, 4)),
    (R(5, 2, 3), R(3, 4)),
    (R(2, 3), R(5, 3, 4)),
)
cases(
    anp.matmul,
    (R(3), R(5, 3, 2)),
    (R(5, 2, 3), R(3)),
    (R(4, 1, 2, 3), R(5, 3, 2)),
    (R(5, 2, 3), R(4, 1, 3, 2)),
    (R(1, 2, 3), R(5, 3, 2)),
    (R(2, 3), C(3)),
    (C(2, 3), R(3, 2)),
)
cases(
    anp.matmul,
    (R(2, 0), R(0, 3)),
    (R(0, 3), R(3)),
    (np.float32(R(2, 3)), np.float32(R(3, 2))),
    (R(5, 2, 3), R(1, 3, 2)),
)
shared(anp.matmul, 3, 3)
shared(anp.matmul, 3)
cases(
    anp.tensordot,
    (R(2, 3, 4), R(3, 4, 5)),
    (R(2, 3), R(2, 3)),
    (R(2, 3), R(3, 4), 1),
    (R(2), R(3), 0),
    (R(2, 3, 4), R(4, 3, 2), ([1, 2], [1, 0])),
    (R(2, 3), R(4, 3), (1, 1)),
    (C(2, 3), R(3), 1),
)
case(anp.tensordot, R(2, 3, 4), R(4, 3, 2), axes=([-1, 0], [0, -1]))
A23, A34 = (((2, 3), 2, np.dtype(float), False), ((3, 4), 2, np.dtype(float), False))
V3 = ((3,), 1, np.dtype(float), False)
cases(dot_adjoint_0, (R(3, 4), R(2, 4), A23, A34), (R(3), R(2), A23, V3), (R(3), NUMBER, V3, V3))
cases(dot_adjoint_1, (R(2, 3), R(2, 4), A23, A34), (R(2, 3), R(2), A23, V3), (R(3), NUMBER, V3, V3))
cases(tensordot_adjoint_0, (R(3, 4), R(2, 4), 1, 2, 2), (R(4, 3), R(2, 4), ([1], [1]), 2, 2))
cases(tensordot_adjoint_1, (R(2, 3), R(2, 4), 1, 2, 2), (R(2, 3), R(2, 4), ([1], [1]), 2, 2))
cases(anp.outer, (R(2), R(3)), (C(2), R(3)), (R(0), R(3)))
cases(anp.kron, (R(2, 3), R(3, 2)), (R(2), R(3)), (R(2, 2), R(1, 3)), (NUMBER, R(3)), (C(2, 2), R(2, 2)))
cases(anp.cross, (R(3), R(3)), (R(4, 3), R(4, 3)), (R(3, 4), R(4, 3), 0))
case(anp.cross, R(3, 4), R(3, 4), axis=0)
case(anp.cross, R(3, 4), R(4, 3), axisa=0, axisc=0)
shared(anp.cross, 3)
for call in (
    ("ij,jk->ik", R(2, 3), R(3, 4)), ("ij,jk", R(2, 3), R(3, 4)), ("ij->ji", R(2, 3)), ("ij->", R(2, 3)),
    ("i,j,k->ijk", R(2), R(3), R(4)), ("ij,ij->i", R(2, 3), R(2, 3)), ("...ij,...jk->...ik", R(5, 2, 3), R(3, 4)), ("i...->...", R(3, 2)),
    ("...i,...i", R(1, 3), R(4, 3)), ("aij,ajk->aik", R(5, 2, 3), R(5, 3, 2)), ("Zj,jY->ZY", R(2, 3), R(3, 2)), ("i,i->", R(0), R(0)),
    ("ij,j->i", C(2, 3), R(3)), ("i,->i", R(3), NUMBER),
    (R(2, 3), [0, 1], R(3, 4), [1, 2], [0, 2]),
):  # fmt: skip
    case(anp.einsum, *call)
case(anp.einsum, "ij,jk,kl->il", R(2, 3), R(3, 2), R(2, 4), optimize=True)

# ---- what stands on the tape of a gradient

V, M = vspace(R(4)), vspace(R(2, 3))
PAIR = vspace((R(2), R(3)))
cases(
    (func(VSpace.add), func(VSpace.mut_add)),
    (V, R(4), R(4)),
    (M, R(2, 3), R(2, 3)),
    (PAIR, (R(2), R(3)), (R(2), R(3))),
)
cases(
    untake,
    (R(3), [0, 0, 2], V),
    (NUMBER, 1, V),
    (R(2), slice(0, 2), V),
    (R(2), (slice(None), 1), M),
    (R(0), slice(0, 0), V),
)
cases(ab.container_untake, (R(3), 1, PAIR), ((R(2),), slice(0, 1), PAIR))
cases(
    sparse_add,
    (V, R(4), untake(R(2), [0, 0], V)),
    (V, None, untake(NUMBER, 1, V)),
    (PAIR, (R(2), R(3)), ab.container_untake(R(3), 1, PAIR)),
)
cases(anp.linspace, (NUMBER, NUMBER + 1, 5), (0.5, 2.0, 3), (NUMBER, NUMBER, 1))

# ---- linear algebra


def S(*shape):
    """Well-conditioned square matrices."""
    return R(*shape) + 3.0 * np.eye(shape[-1])


def spd(*shape):
    """Symmetric positive definite matrices."""
    x = R(*shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


cases(
    linalg.solve,
    (S(3, 3), R(3)),
    (S(3, 3), R(3, 2)),
    (S(4, 3, 3), R(4, 3, 2)),
    (S(3, 3) + 0j, C(3)),
    (S(3, 3), C(3, 2)),
    (S(1, 1), R(1)),
)
cases(
    (linalg.inv, linalg.det, linalg.slogdet), (S(3, 3),), (S(2, 3, 3),), (S(3, 3) + 1j * R(3, 3),), (S(1, 1),)
)
cases(
    linalg._primitive_norm,
    (R(4),),
    (R(3, 4),),
    (R(3, 4), "fro"),
    (R(3, 4), None, 0),
    (R(3, 4), 3, 1),
    (R(4), 2),
    (R(4), 1.5),
    (R(2, 3, 4), "fro", (0, 2)),
    (C(3),),
    (R(2, 3, 4),),
)
case(linalg._primitive_norm, R(3, 4), axis=-1)
case(linalg._primitive_norm, R(3, 3), ord="nuc")
cases(linalg.cholesky, (spd(3, 3),), (spd(2, 3, 3),), (spd(1, 1),), (spd(3, 3) + 0j,))
cases(linalg.pinv, (R(3, 3),), (R(4, 3),), (R(2, 4),), (R(2, 4, 3),))
cases(linalg.eigh, (R(4, 4),), (R(4, 4), "U"), (R(2, 3, 3),), (spd(1, 1),), (spd(3, 3) + 0j,))
case(linalg.eigh, R(4, 4), UPLO="U")
cases(
    linalg.svd,
    (R(4, 3), False),
    (R(3, 4), False),
    (R(3, 3), False),
    (R(2, 4, 3), False),
    (R(4, 3), True, False),
    (R(2, 3, 4), False, False),
    (C(3, 2), False, False),
)
case(linalg.svd, R(2, 3, 4), full_matrices=False)
case(linalg.svd, R(3, 4), compute_uv=False)

# ---- Fourier transforms

for primitive in (fft.fft, fft.ifft, fft.rfft, fft.irfft):
    cases(primitive, (R(6),), (R(2, 6),), (R(6, 3), None, 0), (R(6), 4), (R(6), 8), (R(6, 2), 4, -2))
    case(primitive, R(6), norm="ortho")
    case(primitive, R(6, 4), 4, axis=0)
for primitive in (fft.fft2, fft.ifft2, fft.fftn, fft.ifftn, fft.rfft2, fft.irfft2, fft.rfftn, fft.irfftn):
    cases(
        primitive,
        (R(4, 6),),
        (R(2, 4, 6),),
        (R(4, 6), (2, 8), (0, 1)),
        (R(4, 6), None, (1, 0)),
        (R(4, 6), (6, 4), (-1, 0)),
    )
for primitive in (
    fft.fft,
    fft.ifft,
    fft.irfft,
    fft.fft2,
    fft.ifft2,
    fft.irfft2,
    fft.fftn,
    fft.ifftn,
    fft.irfftn,
):
    cases(primitive, (C(4, 6),), (C(2, 4, 4),))
cases((fft.rfft, fft.irfft), (R(5),), (R(6), 5))

# ---- autograd's rule is wrong, refuses, or does not exist

beyond(anp.transpose, X, (-1, 0, 1))  # wrong: sorts negative axes as they are
beyond(ArrayBox.__getitem__, X, [True, True])  # wrong: takes the list for positions 1, 1
beyond(anp.tile, R(2, 3), 2)  # wrong: aligns repetitions with the first axis
beyond(anp.roll, R(2, 3), (1, 2), (0, 1))
beyond(WHERE, np.array([[True], [False]]), R(3), NUMBER)
beyond(WHERE, np.array([True, False]), R(2, 2), R(2))
beyond(anp.broadcast_to, R(3), (2, 3))
beyond(anp.broadcast_to, NUMBER, (2, 2))
beyond(anp.broadcast_to, R(1), (0,))
beyond(anp.repeat, R(3), [1, 0, 2])
beyond(anp.flip, X, (0, -1))
beyond(anp.take, X, [0, 2], 1)
beyond(anp.atleast_2d, R(3))
beyond(anp.astype, R(3), np.complex128)
beyond(anp.dot, C(3), R(3))
beyond(anp.dot, R(2, 3), C(3, 2))
beyond(anp.einsum, "ii->i", R(3, 3))
beyond(anp.einsum, "ii", R(3, 3))
beyond(anp.einsum, "ii,i->i", R(3, 3), R(3))
beyond(anp.einsum, "iij->j", R(2, 2, 3))
beyond(anp.einsum, "i,i", C(3), R(3))
beyond(anp.einsum, R(3, 3), [0, 0], [0])
beyond(linalg._primitive_norm, R(2, 3, 4), None, (-2, -1))
beyond(linalg.solve, S(4, 3, 3), R(3))
for primitive in (fft.rfft, fft.irfft):
    beyond(primitive, R(6, 4), n=4, axis=0, norm="forward")  # wrong: scaled as if norm were None
    beyond(primitive, R(6, 4), n=4, axis=0)  # wrong: does not see the keyword n
    beyond(primitive, R(5))
beyond(fft.rfftn, R(4, 5))
beyond(fft.irfftn, C(4, 4), (4, 5), (0, 1))
