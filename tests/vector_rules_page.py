"""Write docs/reference/vector_rules.md, the list of functions with vector rules; run it after adding one."""

import importlib
import sys
from collections import defaultdict
from pathlib import Path

import autograd.numpy as np

from tapesplit.errors import UnnamedPrimitiveError
from tapesplit.names import label_of, primitive_name
from tapesplit.rules import Elementwise, Movement, registered

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "vector_rules.md"
HOSTS = ("scipy.special", "scipy.signal", "scipy.linalg", "scipy.stats", "misc.fixed_points")
PUBLIC = ("autograd.numpy", "autograd.numpy.linalg", "autograd.numpy.fft")
HEAD = """\
# Functions with vector rules

These functions carry all directions of a sweep at once. Any other function is differentiated through
autograd's own rule, one direction at a time, unless you [write a vector rule](../how_to/vector_rule.md).
Functions that autograd builds from these, such as `np.stack` or `np.append`, need no rule of their own.

*Elementwise* functions have a formula for each partial derivative, *movements* only put elements in other
places, and *others* have formulas for many directions. Aliases count as well: `np.acos` is `np.arccos`.

This page is written by `python tests/vector_rules_page.py`.
"""
OTHERS = "## Inside derivatives and containers"
WIDTH = 118


def page():
    """Return the text of the page."""
    for host in HOSTS:
        importlib.import_module(f"autograd.{host}")
    sections = defaultdict(lambda: defaultdict(set))
    for primitive, rule in registered().items():
        heading, names = place(primitive)
        sections[heading][kind(rule)] |= names
    parts = [HEAD]
    for heading in sorted(sections, key=lambda heading: (heading == OTHERS, heading)):
        kinds = sections[heading]
        lists = [
            f"- {k}: {', '.join(sorted(kinds[k], key=_bare))}"
            for k in ("elementwise", "movements", "others")
            if k in kinds
        ]
        parts.append("\n".join([heading, "", *map(wrapped, lists)]) + "\n")
    return "\n".join(parts)


def _bare(name):
    return name.strip("`")


def kind(rule):
    """Return the kind of a rule, as the page calls it."""
    return (
        "elementwise"
        if isinstance(rule, Elementwise)
        else "movements"
        if isinstance(rule, Movement)
        else "others"
    )


def place(primitive):
    """Return heading and names of a primitive: those that users know, where there are any."""
    label = label_of(primitive)
    try:
        module, _, name = primitive_name(primitive).partition(":")
    except UnnamedPrimitiveError:
        module, name = "", ""
    if label == "getitem":
        return "## autograd.numpy", {"`x[index]`"}
    if module in PUBLIC:
        return f"## {module}", {f"`{label}`"}
    if module.startswith(("autograd.scipy.", "autograd.misc.")):
        return f"## {module}", {
            f"`{known}`" for known in (name, label) if hasattr(sys.modules[module], known)
        }
    home = getattr(primitive.fun, "__module__", None)
    if home in {"numpy", "autograd.numpy.numpy_wrapper"} and hasattr(np, label):
        return "## autograd.numpy", {f"`{label}`"}
    return OTHERS, {label.replace("_", " ")}


def wrapped(text):
    """Break a list item into lines."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) >= WIDTH:
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(page(), encoding="utf-8")
