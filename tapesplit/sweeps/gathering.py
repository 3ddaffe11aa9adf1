"""Gathering: which numbers of a tape the coefficients of a scalar sweep are made of, and in what order."""

from dataclasses import replace

import numpy as np

from tapesplit.arrays import IntArray
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.forms import number_shape
from tapesplit.sweeps.coefficients import Operand, Recipe, ValueTable, gathered_dimensions
from tapesplit.sweeps.unknowns import Elements

__all__ = ["gather_only_what_is_read"]


def gather_only_what_is_read(
    recipes: list[Recipe], facts: TapeFacts, order: IntArray, elements: Elements, others: list[Operand]
) -> tuple[tuple[Recipe, ...], ValueTable]:
    """Find the values that recipes read, and renumber the reads of recipes by their place when gathered.

    Recipes refer to elements by number. `order` and `elements` are the entries whose elements are numbered,
    in this order, and these numbers; `others` is what is read besides, numbered behind those.
    """
    numbered = elements.origin.size
    read = np.zeros(numbered, dtype=np.bool_)
    for index in (index for recipe in recipes for index in recipe.reads):
        if index.size and index.flat[0] < numbered:
            read[elements.origin[index]] = True  # a moved element has the value of its origin
    sizes = facts.sizes[order]
    starts = np.cumsum(sizes) - sizes
    needed = sizes > 0
    needed[needed] = np.logical_or.reduceat(read, starts[needed])
    ndim = np.array([gathered_dimensions(number_shape(form)) for form in facts.forms])[facts.form[order]]
    complex_ = facts.is_complex[order]
    groups = {
        (n, is_complex): np.flatnonzero(needed & (ndim == n) & (complex_ == is_complex))
        for is_complex in ((False, True) if complex_.any() else (False,))
        for n in range(3)
    }
    kept = np.concatenate([*groups.values()])
    shift = np.zeros(sizes.size, dtype=np.int64)
    shift[kept] = np.cumsum(sizes[kept]) - sizes[kept] - starts[kept]
    address = np.repeat(shift, sizes)
    address += np.arange(numbered)
    beyond = int(sizes[kept].sum()) - numbered

    def moved(index: IntArray) -> IntArray:
        """Return the places of elements among the gathered values."""
        known = not index.size or index.flat[0] < numbered
        return address[elements.origin[index]] if known else index + beyond

    found = [Operand(None, tuple(order[group].tolist()), *form) for form, group in groups.items()]
    table = ValueTable(tuple(operand for operand in (*found, *others) if operand.entries))
    return tuple(replace(recipe, reads=tuple(map(moved, recipe.reads))) for recipe in recipes), table
