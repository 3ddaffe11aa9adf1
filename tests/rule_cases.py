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
from autograd.numpy.numpy_wrapper import (
    _array_from_scalar_or_array,
    _astype,
    array_from_args,
    concatenate_args,
)
from autograd.util import func

from tapesplit.recording.primitives import (
    adjusted_side,
    inner_variable,
    log_abs_det,
    singular_values,
    singular_vectors,
    slope_of_tanh,
    summed_untake,
    symmetric_eigenvalues,
    symmetric_eigenvectors,
)

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


def real(*shape):
    """Random array away from 0 and ±1, of both signs."""
    return _random.uniform(0.1, 0.9, shape) * _random.choice([-1.0, 1.0], shape)


def positive(*shape):
    """Random positive array, away from 0 and 1."""
    return _random.uniform(0.1, 0.9, shape)


def complexes(*shape):
    """Random complex array."""
    return real(*shape) + 1j * real(*shape)


def shared(primitive, *shape, complex_too=False):
    """Add a call with one array as both operands."""
    x = real(*shape)
    case(primitive, x, x)
    if complex_too:
        z = complexes(*shape)
        case(primitive, z, z)


NUMBER = np.float64(0.7)
WHERE = getattr(anp, "_original_where", anp.where)  # anp.where is no primitive in autograd 1.9

# ---- elementwise, two operands

for primitive in (anp.add, anp.subtract, anp.multiply, anp.divide):
    cases(
        primitive,
        (real(2, 3), real(2, 3)),
        (real(2, 3), real(3)),
        (real(3), real(2, 1)),
        (real(4, 1, 3), real(2, 1)),
        (real(3), 2.0),
        (2, real(3)),
    )
    cases(
        primitive,
        (NUMBER, NUMBER + 1),
        (NUMBER, real(2)),
        (0.5, NUMBER),
        (real(2, 0), real(0)),
        (real(1, 1), real(2, 3)),
        (1.5, 0.5),
    )
    cases(
        primitive,
        (complexes(2, 3), complexes(3)),
        (real(2, 3), complexes(3)),
        (complexes(3), real(2, 3)),
        (complexes(), real(3)),
    )
    cases(
        primitive,
        (np.float32(real(3)), np.float32(real(3))),
        (np.float32(real(3)), 2.0),
        (real(3).astype(np.longdouble), real(3)),
    )
    shared(primitive, 3, complex_too=True)
for primitive in (anp.power, anp.arctan2, anp.hypot, anp.mod, anp.logaddexp, anp.logaddexp2):
    cases(
        primitive,
        (positive(2, 3), positive(3)),
        (positive(3), 2.0),
        (positive(3), 2),
        (0.3, positive(3)),
        (NUMBER, NUMBER + 0.25),
        (positive(0), positive(0)),
        (positive(3, 1), positive(2)),
    )
    cases(primitive, (0.5, 0.75), (np.float32(positive(3)), np.float32(positive(3))))
cases(
    anp.power,
    (np.array([0.0, 2.0]), 2.0),
    (np.array([0.0, 2.0]), 1.0),
    (np.array([0.0, 2.0]), np.array([0.0, 3.0])),
    (complexes(3), 3.0),
)
cases(anp.power, (np.array([0.0, 2.0]), 0.0), (real(3), 3), (real(3), np.array([1, 2, 3])))
for primitive in (anp.maximum, anp.minimum, anp.fmax, anp.fmin):
    cases(
        primitive,
        (real(2, 3), real(3)),
        (real(3), 0.0),
        (NUMBER, NUMBER + 1),
        (np.zeros(2), np.array([0.0, 1.0])),
        (real(0), 1.0),
    )
    shared(primitive, 3)
cases(
    WHERE,
    (np.array([True, False, True]), real(3), real(3)),
    (np.array([True, False]), real(2), complexes(2)),
    (True, NUMBER, 2.0),
    (np.zeros(0, bool), real(0), real(0)),
)

# ---- elementwise, one operand

SMOOTH = (
    anp.negative,
    anp.reciprocal,
    anp.square,
    anp.exp,
    anp.exp2,
    anp.expm1,
    anp.sin,
    anp.cos,
    anp.tan,
    anp.arctan,
    anp.sinh,
    anp.cosh,
    anp.tanh,
    slope_of_tanh,
    anp.arcsinh,
    anp.sinc,
    anp.arcsin,
    anp.arccos,
    anp.arctanh,
    anp.real,
    anp.imag,
    anp.angle,
    anp.real_if_close,
    anp.abs,
    anp.conj,
    anp.nan_to_num,
)
cases(SMOOTH, (real(2, 3),), (NUMBER,), (real(2, 0),), (np.float32(real(3)),), (0.5,), (complexes(3),))
REAL = (anp.fabs, anp.rad2deg, anp.degrees, anp.deg2rad, anp.radians)
cases(REAL, (real(2, 3),), (NUMBER,), (real(0),), (0.25,))
cases(
    (anp.log, anp.log2, anp.log10, anp.log1p, anp.sqrt),
    (positive(2, 3),),
    (NUMBER,),
    (positive(0),),
    (np.float32(positive(3)),),
    (0.5,),
    (complexes(3),),
)
cases(anp.arccosh, (1.0 + positive(2, 3),), (NUMBER + 1,), (complexes(3),))
case(anp.abs, np.array([-1.0, 0.0, 2.0]))
case(anp.abs, np.array([0.0, 1.0 + 1.0j]))
case(anp.real_if_close, np.array([1.0 + 1e-20j, 2.0]))
case(anp.nan_to_num, np.array([np.nan, np.inf, 1.0]))
cases(
    anp.clip,
    (real(5), -0.4, 0.4),
    (np.array([-1.0, 0.0, 1.0, 2.0]), 0.0, 1.0),
    (real(5), None, 0.4),
    (real(2, 3), real(3) - 1, 0.5),
    (NUMBER, 0.0, 1.0),
)
case(anp.clip, real(5), a_min=-0.4, a_max=0.4)
case(anp.clip, np.float32(real(5)), -0.4, 0.4)
cases(
    _astype,
    (real(3), np.float32),
    (np.float32(real(3)), np.float64),
    (real(2, 0), np.float32),
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
        primitive,
        (real(3, 4),),
        (real(3, 4), 0),
        (real(3, 4), -1),
        (real(2, 3, 4), 1),
        (real(5),),
        (real(3, 1), 1),
        (NUMBER,),
    )
    case(primitive, real(3, 4), axis=1, keepdims=True)
    case(primitive, real(3, 4), keepdims=True)
    case(primitive, real(2, 3, 4), axis=(0, 2))
    case(primitive, real(2, 3, 4), axis=(0, 1, 2))
    case(primitive, np.float32(real(3, 4)), axis=0)
for primitive in REDUCTIONS[:3]:
    cases(primitive, (complexes(3, 4), 0), (real(0, 3), 1), (real(3, 0, 2), 0))
for primitive in REDUCTIONS[3:]:
    cases(primitive, (np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), 1), (np.ones((2, 3)),), (real(0, 3), 1))
for primitive in SPREADS:
    case(primitive, real(3, 4), axis=0, ddof=1)
    case(primitive, real(3, 4), 1, ddof=1, keepdims=True)
    case(primitive, complexes(3, 4))
SOME = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])
for primitive in (*REDUCTIONS[:3], *SPREADS):  # autograd's rules ignore these keywords
    beyond(primitive, real(3, 4), where=SOME)
    beyond(primitive, real(3, 4), axis=1, keepdims=True, where=SOME)
    beyond(primitive, real(2, 3, 4), axis=(0, 2), where=SOME)
    beyond(primitive, real(3, 4), axis=0, where=SOME[:, :1])
    beyond(primitive, real(3, 4), where=True)
beyond(REDUCTIONS[1], real(3, 4), axis=1, where=np.array([[True], [True], [True]]))
for primitive in (anp.sum, anp.prod):
    beyond(primitive, real(3, 4), axis=1, initial=2.0)
    beyond(primitive, real(3, 4), axis=0, initial=-0.5, where=SOME)
beyond(anp.prod, np.array([0.0, 2.0, 0.0, 3.0]), initial=2.0, where=np.array([True, True, False, True]))
for primitive in REDUCTIONS[3:]:
    beyond(primitive, real(3, 4), axis=1, initial=0.2)
    beyond(primitive, real(3, 4), axis=0, initial=5.0 if "max" in primitive.__name__ else -5.0)
    beyond(primitive, real(3, 4), axis=1, where=SOME, initial=-0.3)
for primitive in SPREADS:
    beyond(primitive, real(3, 4), axis=1, ddof=1, where=SOME)
    beyond(primitive, real(3, 4), axis=1, correction=0.5)
    beyond(primitive, real(3, 4), axis=0, mean=np.array([[0.1, 0.2, 0.3, 0.4]]))
    beyond(primitive, real(1, 2), axis=0, mean=np.array([[2.0, -2.0]]))
case(anp.sum, real(3), dtype=np.float64)  # keywords that no rule names take the loop
case(anp.sum, real(3, 4), 0, None, None)
case(anp.mean.__globals__["_primitive_mean"], real(3), dtype=np.float64)
case(anp.einsum, "ij->i", real(2, 3), order="C")
cases(
    anp.cumsum,
    (real(4),),
    (real(3, 4),),
    (real(3, 4), 0),
    (real(3, 4), 1),
    (real(3, 4), -1),
    (real(2, 3, 2), 1),
    (complexes(3),),
    (real(0),),
)
cases(
    anp.trace,
    (real(3, 3),),
    (real(3, 4),),
    (real(3, 4), 1),
    (real(3, 4), -1),
    (complexes(3, 3),),
    (real(3, 3, 2),),
)
cases(
    anp.diff,
    (real(5),),
    (real(3, 5),),
    (real(3, 5), 2),
    (real(4, 3), 1, 0),
    (real(3, 5), 3),
    (real(5, 1),),
    (complexes(5),),
)
case(anp.diff, real(4, 5), n=2, axis=0)
cases((anp.sort,), (real(6),), (real(0),), (np.array([1.0, 1.0, 0.0]),))
cases((anp.partition,), (real(6), 2))
beyond(anp.partition, _random.permutation(300) / 300, 100)  # wrong: np.argpartition differs there
case(anp.sort, real(6), axis=0)
case(anp.sort, NUMBER, axis=None)
case(anp.partition, NUMBER, 0, axis=None)

# ---- movements

X = real(2, 3, 4)
cases(
    anp.reshape,
    (real(2, 3), (3, 2)),
    (real(2, 3), -1),
    (real(2, 3), (1, 6, 1)),
    (NUMBER, (1, 1)),
    (real(0, 3), (3, 0)),
    (complexes(2, 3), 6),
)
case(anp.reshape, real(2, 3), (3, 2), order="F")
cases(anp.ravel, (real(2, 3),), (real(2, 3), "F"), (real(0),), (NUMBER,))
cases((anp.squeeze,), (real(1, 3, 1),), (real(1, 3, 1), 0), (real(1, 1),), (real(1, 3, 1), (0, 2)))
cases((anp.expand_dims,), (real(2, 3), 0), (real(2, 3), -1), (NUMBER, 0), (real(2), (0, 2)))
cases(anp.broadcast_to, (real(1, 3), (4, 3)), (real(2, 1), (2, 3)), (real(3), (3,)))
cases((anp.atleast_1d, anp.atleast_2d, anp.atleast_3d), (NUMBER,), (real(3),), (real(2, 3),), (X,))
cases(anp.transpose, (X,), (X, (1, 2, 0)), (real(3),), (complexes(2, 3),))
cases((anp.swapaxes, anp.moveaxis), (X, 0, 2), (X, -1, 0))
case(anp.moveaxis, X, (0, 1), (1, 2))
cases(anp.rollaxis, (X, 2), (X, 2, 1), (X, 0, 3))
cases(anp.roll, (real(5), 2), (real(5), -1), (X, 1, 1), (X, 7), (real(0), 1))
cases(anp.flip, (X,), (X, 0), (X, (0, -1)), (complexes(3),))
cases((anp.flipud, anp.fliplr), (real(2, 3),))
cases(anp.rot90, (real(2, 3),), (real(2, 3), 2), (real(2, 3), -1))
cases((fft.fftshift, fft.ifftshift), (real(5),), (real(2, 3),), (real(2, 3), 1), (complexes(4),))
for index in (
    0,
    -1,
    slice(None),
    slice(None, None, -1),
    slice(1, 2),
    slice(1, 1),
    Ellipsis,
    None,
    (),
    (0, 1),
    (0, 1, 2),
    (1, slice(None), -1),
    (Ellipsis, 0),
    (None, 0, Ellipsis, None),
    np.array([0, 1, 1]),
    [1, 0, 0],
    np.array([[0, 1], [1, 1]]),
    np.array([True, False]),
    (slice(None), np.array([0, 2, 2, 0])),
    (np.array([0, 1]), np.array([2, 2])),
    (np.array([[0], [1]]), np.array([1, 1, 2])),
    (0, slice(None), np.array([3, 3])),
    (np.array([0, 1]), slice(None), np.array([3, 3])),
    X > 0,
    (slice(None), X[0] > 0),
    np.zeros(0, int),
    (slice(None), [0, 0], slice(None, None, 2)),
):
    case(ArrayBox.__getitem__, X, index)
cases(
    ArrayBox.__getitem__,
    (NUMBER, ()),
    (real(0, 3), slice(None)),
    (complexes(3), [0, 0]),
    (np.float32(real(3)), slice(1, None)),
    (np.array(0.5), None),
)
cases(anp.take, (real(4), [0, 0, 3]), (X, 1), (X, [0, 2], 1))
cases(anp.repeat, (real(3), 2), (X, 2, 1), (real(3, 1), 4, 1), (real(2, 3), 2), (real(3), 0))
cases(anp.tile, (real(3), 2), (real(2, 3), (2, 1)), (real(2, 3), (2, 2)), (real(3), (2, 3)))
cases(anp.full, ((2, 3), NUMBER), (3, np.array(0.5)), (0, NUMBER))
cases(anp.diag, (real(3),), (real(3), 1), (real(3, 3),), (real(3, 3), -1))
cases(anp.diagonal, (real(3, 4),), (real(3, 4), 1), (X, 0, 1, 2), (X, 1, -1, -2))
cases(anp.make_diagonal, (real(3), 0, -1, -2), (real(2, 3), 0, -1, -2))
cases((anp.tril, anp.triu), (real(3, 3),), (real(3, 4), 1), (real(3, 4), -1), (X,))
cases(fft.truncate_pad, (real(4), (2,)), (real(4), (6,)), (complexes(3, 4), (5, 2)))
cases(
    concatenate_args,
    (0, real(2), real(3)),
    (0, real(2), np.ones(2), real(1)),
    (1, real(2, 3), real(2, 1)),
    (-1, real(2, 2), real(2, 0)),
    (0, real(0), real(2)),
    (0, real(2), complexes(2)),
)
cases(
    array_from_args,
    ((), {}, NUMBER, 2.0, NUMBER),
    ((), {}, real(2), real(2)),
    ((), {"ndmin": 3}, real(2)),
    ((), {"dtype": float}, NUMBER, NUMBER),
)
cases(_array_from_scalar_or_array, ((), {}, NUMBER), ((), {}, real(2, 3)), ((), {"ndmin": 3}, real(2)))
cases((anp.split, anp.array_split), (real(6), 3), (real(6), [1, 4]), (real(2, 6), 2, 1))
case(anp.array_split, real(7), 3)
cases(anp.vsplit, (real(4, 2), 2))
cases(anp.hsplit, (real(2, 4), 2))
cases(anp.dsplit, (real(1, 2, 4), [1]))
cases(
    anp.pad,
    (real(3), 1, "constant"),
    (real(2, 3), (1, 2), "constant"),
    (real(2, 3), ((1, 0), (0, 2)), "constant"),
    (real(2, 3), ((1, 2),), "constant"),
)
case(anp.pad, real(2, 0), 1, mode="constant")
cases(
    ab.container_take,
    ((real(2), real(3, 1)), 1),
    ([real(2), NUMBER], 1),
    ({"b": real(2), "a": real(3)}, "b"),
    ((real(2), real(3), real(1)), slice(1, None)),
)
cases(ab.make_sequence, (tuple, real(2), NUMBER), (list, real(2), 1.0))
cases(
    (ab.sequence_extend_right, ab.sequence_extend_left),
    ((real(2),), real(3), NUMBER),
    ([real(2), real(1)], real(3)),
)
cases(ab._make_dict, (["b", "a"], [real(2), real(3)]))

# ---- products

for primitive in (anp.dot, anp.inner):
    cases(
        primitive,
        (real(3), real(3)),
        (NUMBER, real(3)),
        (real(2, 3), NUMBER),
        (NUMBER, NUMBER + 1),
        (real(0), real(0)),
    )
    shared(primitive, 3, 3, complex_too=True)
cases(
    anp.dot,
    (real(2, 3), real(3)),
    (real(3), real(3, 2)),
    (real(2, 3), real(3, 4)),
    (real(2, 3, 4), real(4)),
    (real(2, 3, 4), real(2, 4, 3)),
    (real(2, 0), real(0, 3)),
    (np.float32(real(2, 3)), np.float32(real(3))),
)
cases(
    anp.inner,
    (complexes(3), real(3)),
    (real(3), complexes(3)),
    (real(2, 3), real(3)),
    (real(3), real(2, 3)),
    (real(2, 3), real(4, 3)),
    (real(2, 4, 3), real(5, 3)),
)
cases(
    anp.matmul,
    (real(3), real(3)),
    (real(2, 3), real(3)),
    (real(3), real(3, 2)),
    (real(2, 3), real(3, 4)),
    (real(5, 2, 3), real(5, 3, 4)),
    (real(5, 2, 3), real(3, 4)),
    (real(2, 3), real(5, 3, 4)),
)
cases(
    anp.matmul,
    (real(3), real(5, 3, 2)),
    (real(5, 2, 3), real(3)),
    (real(4, 1, 2, 3), real(5, 3, 2)),
    (real(5, 2, 3), real(4, 1, 3, 2)),
    (real(1, 2, 3), real(5, 3, 2)),
    (real(2, 3), complexes(3)),
    (complexes(2, 3), real(3, 2)),
)
cases(
    anp.matmul,
    (real(2, 0), real(0, 3)),
    (real(0, 3), real(3)),
    (np.float32(real(2, 3)), np.float32(real(3, 2))),
    (real(5, 2, 3), real(1, 3, 2)),
)
shared(anp.matmul, 3, 3)
shared(anp.matmul, 3)
cases(
    anp.tensordot,
    (real(2, 3, 4), real(3, 4, 5)),
    (real(2, 3), real(2, 3)),
    (real(2, 3), real(3, 4), 1),
    (real(2), real(3), 0),
    (real(2, 3, 4), real(4, 3, 2), ([1, 2], [1, 0])),
    (real(2, 3), real(4, 3), (1, 1)),
    (complexes(2, 3), real(3), 1),
)
case(anp.tensordot, real(2, 3, 4), real(4, 3, 2), axes=([-1, 0], [0, -1]))
A23, A34 = (((2, 3), 2, np.dtype(float), False), ((3, 4), 2, np.dtype(float), False))
V3 = ((3,), 1, np.dtype(float), False)
cases(
    dot_adjoint_0, (real(3, 4), real(2, 4), A23, A34), (real(3), real(2), A23, V3), (real(3), NUMBER, V3, V3)
)
cases(
    dot_adjoint_1,
    (real(2, 3), real(2, 4), A23, A34),
    (real(2, 3), real(2), A23, V3),
    (real(3), NUMBER, V3, V3),
)
cases(tensordot_adjoint_0, (real(3, 4), real(2, 4), 1, 2, 2), (real(4, 3), real(2, 4), ([1], [1]), 2, 2))
cases(tensordot_adjoint_1, (real(2, 3), real(2, 4), 1, 2, 2), (real(2, 3), real(2, 4), ([1], [1]), 2, 2))
case(anp.outer, real(2), b=real(3))
cases(anp.outer, (real(2), real(3)), (complexes(2), real(3)), (real(0), real(3)))
cases(
    anp.kron,
    (real(2, 3), real(3, 2)),
    (real(2), real(3)),
    (real(2, 2), real(1, 3)),
    (NUMBER, real(3)),
    (complexes(2, 2), real(2, 2)),
)
cases(anp.cross, (real(3), real(3)), (real(4, 3), real(4, 3)), (real(3, 4), real(4, 3), 0))
case(anp.cross, real(3, 4), real(3, 4), axis=0)
case(anp.cross, real(3, 4), real(4, 3), axisa=0, axisc=0)
shared(anp.cross, 3)
for call in (
    ("ij,jk->ik", real(2, 3), real(3, 4)),
    ("ij,jk", real(2, 3), real(3, 4)),
    ("ij->ji", real(2, 3)),
    ("ij->", real(2, 3)),
    ("i,j,k->ijk", real(2), real(3), real(4)),
    ("ij,ij->i", real(2, 3), real(2, 3)),
    ("...ij,...jk->...ik", real(5, 2, 3), real(3, 4)),
    ("i...->...", real(3, 2)),
    ("...i,...i", real(1, 3), real(4, 3)),
    ("aij,ajk->aik", real(5, 2, 3), real(5, 3, 2)),
    ("Zj,jY->ZY", real(2, 3), real(3, 2)),
    ("i,i->", real(0), real(0)),
    ("ij,j->i", complexes(2, 3), real(3)),
    ("ij,j->i", real(4, 1), real(3)),
    ("ij,j,jk->ik", real(2, 1), real(3), real(3, 1)),
    ("i,->i", real(3), NUMBER),
    (real(2, 3), [0, 1], real(3, 4), [1, 2], [0, 2]),
):
    case(anp.einsum, *call)
case(anp.einsum, "ij,jk,kl->il", real(2, 3), real(3, 2), real(2, 4), optimize=True)

# ---- what stands on the tape of a gradient

V, M = vspace(real(4)), vspace(real(2, 3))
PAIR = vspace((real(2), real(3)))
cases(
    (func(VSpace.add), func(VSpace.mut_add)),
    (V, real(4), real(4)),
    (M, real(2, 3), real(2, 3)),
    (PAIR, (real(2), real(3)), (real(2), real(3))),
)
cases(func(VSpace.add), (M, real(2, 3), NUMBER), (M, real(3), real(2, 3)))
cases(
    untake,
    (real(3), [0, 0, 2], V),
    (NUMBER, 1, V),
    (real(2), slice(0, 2), V),
    (real(2), (slice(None), 1), M),
    (real(0), slice(0, 0), V),
)
cases(ab.container_untake, (real(3), 1, PAIR), ((real(2),), slice(0, 1), PAIR))
cases(
    sparse_add,
    (V, real(4), untake(real(2), [0, 0], V)),
    (V, None, untake(NUMBER, 1, V)),
    (PAIR, (real(2), real(3)), ab.container_untake(real(3), 1, PAIR)),
)
cases(
    anp.linspace, (NUMBER, NUMBER + 1, 5), (0.5, 2.0, 3), (NUMBER, NUMBER, 1), (np.arange(3.0), np.ones(3), 5)
)
TABLE = np.arange(6.0).reshape(2, 3)
for ends in ((TABLE, TABLE**2), (NUMBER, TABLE), (TABLE[:, :1], TABLE[0]), (TABLE[np.newaxis], TABLE[:1])):
    beyond(anp.linspace, *ends, 2)
beyond(anp.linspace, TABLE, TABLE**2, num=4)

# ---- linear algebra


def regular(*shape):
    """Well-conditioned square matrices."""
    return real(*shape) + 3.0 * np.eye(shape[-1])


def spd(*shape):
    """Symmetric positive definite matrices."""
    x = real(*shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


ROTATION = np.array([[0.6, -0.8], [0.8, 0.6]])
cases(
    linalg.solve,
    (regular(3, 3), real(3)),
    (regular(3, 3), real(3, 2)),
    (regular(4, 3, 3), real(4, 3, 2)),
    (regular(3, 3) + 0j, complexes(3)),
    (regular(3, 3), complexes(3, 2)),
    (regular(1, 1), real(1)),
)
cases(
    adjusted_side,
    (regular(3, 3), real(3), real(3)),
    (regular(3, 3), real(3, 2), real(3, 2)),
    (regular(4, 3, 3), real(4, 3, 2), real(4, 3, 2)),
)
for index, shape in ((np.array([2, 0, 2, -1]), (4,)), ((slice(None), np.array([[1, 1], [0, 2]])), (2, 2, 2))):
    space = vspace(np.zeros((3,) if len(shape) == 1 else (2, 3)))
    case(summed_untake, real(*shape), index, space)
cases(inner_variable, (real(3),), (complexes(2, 2),), (1.5,))
cases(
    log_abs_det,
    (regular(3, 3),),
    (regular(1, 1),),
    (regular(2, 3, 3),),
    (regular(2, 1, 1, 1),),
    (regular(0, 2, 2),),
)
for shape, side in (((3, 3), "L"), ((4, 4), "u"), ((1, 1), "L"), ((2, 3, 3), "U"), ((0, 2, 2), "L")):
    matrix = regular(*shape)
    case(symmetric_eigenvalues, matrix, side, np.linalg.eigh(matrix, side)[1])
    case(symmetric_eigenvectors, matrix, side, np.linalg.eigh(matrix, side)[0])
for shape in ((3, 3), (1, 1), (4, 2), (2, 4), (2, 3, 3), (2, 3, 2), (0, 2, 2)):
    matrix = real(*shape)
    case(singular_values, matrix, *np.linalg.svd(matrix, full_matrices=False)[::2])
cases(
    (linalg.inv, linalg.det, linalg.slogdet),
    (regular(3, 3),),
    (regular(2, 3, 3),),
    (regular(1, 1),),
)
cases((linalg.inv, linalg.det), (regular(3, 3) + 1j * real(3, 3),))
beyond(linalg.slogdet, regular(3, 3) + 1j * real(3, 3))  # wrong: takes the sign for a constant
beyond(linalg.slogdet, regular(2, 3, 3) + 1j * real(2, 3, 3))
for shape in ((3, 3), (4, 3), (2, 4), (2, 4, 3)):
    beyond(linalg.pinv, complexes(*shape))  # wrong: transposes without conjugating
cases(
    linalg._primitive_norm,
    (real(4),),
    (real(3, 4),),
    (real(3, 4), "fro"),
    (real(3, 4), None, 0),
    (real(3, 4), 3, 1),
    (real(4), 2),
    (real(4), 1.5),
    (real(2, 3, 4), "fro", (0, 2)),
    (complexes(3),),
    (real(2, 3, 4),),
)
case(linalg._primitive_norm, real(3, 4), axis=-1)
case(linalg._primitive_norm, real(3, 4), keepdims=True)
case(linalg._primitive_norm, real(3, 3), ord="nuc")
case(linalg._primitive_norm, real(3, 4), "nuc", keepdims=True)
cases(linalg.cholesky, (spd(3, 3),), (spd(2, 3, 3),), (spd(1, 1),))
cases(linalg.pinv, (real(3, 3),), (real(4, 3),), (real(2, 4),), (real(2, 4, 3),))
cases(linalg.eigh, (real(4, 4),), (real(4, 4), "U"), (real(2, 3, 3),), (spd(1, 1),), (spd(3, 3) + 0j,))
case(linalg.eigh, real(4, 4), UPLO="U")
cases(linalg.eigh, (complexes(4, 4),), (complexes(3, 3), "U"), (complexes(2, 3, 3),))
cases(
    linalg.eig,
    (regular(4, 4),),
    (real(2, 3, 3),),
    (ROTATION,),
    (spd(3, 3),),
    (complexes(3, 3),),
    (real(1, 1),),
)
cases(
    linalg.svd,
    (real(4, 3), False),
    (real(3, 4), False),
    (real(3, 3), False),
    (real(2, 4, 3), False),
    (real(4, 3), True, False),
    (real(2, 3, 4), False, False),
    (complexes(3, 2), False, False),
)
case(linalg.svd, real(2, 3, 4), full_matrices=False)
for shape in ((3, 3), (2, 4, 3), (2, 3, 4), (1, 2, 1, 1), (0, 2, 3)):
    matrix = real(*shape)
    for factor in (0, 2):
        case(singular_vectors, matrix, factor, *np.linalg.svd(matrix, full_matrices=False))
case(linalg.svd, real(3, 4), compute_uv=False)

# ---- Fourier transforms

for primitive in (fft.fft, fft.ifft, fft.rfft, fft.irfft):
    cases(
        primitive,
        (real(6),),
        (real(2, 6),),
        (real(6, 3), None, 0),
        (real(6), 4),
        (real(6), 8),
        (real(6, 2), 4, -2),
    )
    case(primitive, real(6), norm="ortho")
    case(primitive, real(6, 4), 4, axis=0)
for primitive in (fft.fft2, fft.ifft2, fft.fftn, fft.ifftn, fft.rfft2, fft.irfft2, fft.rfftn, fft.irfftn):
    cases(
        primitive,
        (real(4, 6),),
        (real(2, 4, 6),),
        (real(4, 6), (2, 8), (0, 1)),
        (real(4, 6), None, (1, 0)),
        (real(4, 6), (6, 4), (-1, 0)),
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
    cases(primitive, (complexes(4, 6),), (complexes(2, 4, 4),))
cases((fft.rfft, fft.irfft), (real(5),), (real(6), 5))
cases(fft.fft, (real(5), None, -1, None, None))
cases(fft.fft2, (real(3, 4), None, None), (real(3, 4), None, (0, 1), None, None))

cases(anp.gradient, (real(7),))
for axis in (0, 1, -1):
    case(anp.gradient, real(6, 7), axis=axis)
case(anp.gradient, real(7), axis=(0,))
case(anp.gradient, real(6, 7))
case(anp.gradient, real(6, 3, 7), axis=(-1, 0))
case(anp.gradient, complexes(7))

# ---- autograd's rule is wrong, refuses, or does not exist

beyond(anp.transpose, X, (-1, 0, 1))  # wrong: sorts negative axes as they are
beyond(ArrayBox.__getitem__, X, [True, True])  # wrong: takes the list for positions 1, 1
beyond(anp.tile, real(2, 3), 2)  # wrong: aligns repetitions with the first axis
beyond(anp.roll, real(2, 3), (1, 2), (0, 1))
beyond(WHERE, np.array([[True], [False]]), real(3), NUMBER)
beyond(WHERE, np.array([True, False]), real(2, 2), real(2))
beyond(anp.broadcast_to, real(3), (2, 3))
beyond(anp.broadcast_to, NUMBER, (2, 2))
beyond(anp.broadcast_to, real(1), (0,))
beyond(anp.repeat, real(3), [1, 0, 2])
beyond(anp.flip, X, (0, -1))
beyond(anp.take, X, [0, 2], 1)
beyond(anp.atleast_2d, real(3))
beyond(_astype, real(3), np.complex128)
beyond(anp.dot, complexes(3), real(3))
beyond(anp.dot, real(2, 3), complexes(3, 2))
beyond(anp.einsum, "ii->i", real(3, 3))
beyond(anp.einsum, "ii", real(3, 3))
beyond(anp.einsum, "ii,i->i", real(3, 3), real(3))
beyond(anp.einsum, "iij->j", real(2, 2, 3))
beyond(anp.einsum, "i,i", complexes(3), real(3))
beyond(anp.einsum, real(3, 3), [0, 0], [0])
beyond(linalg._primitive_norm, real(2, 3, 4), None, (-2, -1))
beyond(linalg._primitive_norm, real(3, 4), axis=1, keepdims=True)
beyond(linalg._primitive_norm, np.array([1.0, -3.0, 2.0]), np.inf)
beyond(linalg._primitive_norm, TABLE - 2.2, np.inf, axis=0)
beyond(linalg._primitive_norm, (1.0 + 2.0j) * TABLE - 2.2, np.inf, 1)
beyond(linalg.solve, regular(4, 3, 3), real(3))
beyond(linalg.solve, regular(2, 2), real(3, 2, 1))
beyond(linalg.solve, regular(2, 2), real(1, 2, 3))
beyond(linalg.solve, regular(3, 2, 2), real(4, 1, 2, 1))
beyond(linalg.eigh, real(4, 4), "l")
for primitive in (fft.rfft, fft.irfft):
    beyond(primitive, real(6, 4), n=4, axis=0, norm="forward")  # wrong: scaled as if norm were None
    beyond(primitive, real(6, 4), n=4, axis=0)  # wrong: does not see the keyword n
    beyond(primitive, real(5))
beyond(fft.rfftn, real(4, 5))
for lengths in ((-1, -1), (6, -1)):  # -1 is the length of the argument
    cases((fft.fftn, fft.ifftn), (real(4, 5), lengths, (0, 1)))
    beyond(fft.rfftn, real(4, 5), lengths, (0, 1))
    beyond(fft.rfft2, real(4, 6), lengths)
beyond(fft.irfftn, complexes(4, 4), (-1, 5), (0, 1))
beyond(fft.irfftn, complexes(4, 4), (4, 5), (0, 1))
for length in (2, 3, 4):
    beyond(anp.gradient, real(length))  # refuses, or takes one side for both
    beyond(anp.gradient, real(length, 3))
