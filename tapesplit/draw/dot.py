"""The split tape as DOT text, for Graphviz: one cluster a link."""

from tapesplit.draw.fold import Group, fold, output_text
from tapesplit.draw.numbers import count
from tapesplit.draw.rows import link_rows
from tapesplit.draw.scene import STYLES, chunk_style
from tapesplit.planning.plan import JacobianPlan

__all__ = ["to_dot"]


def to_dot(plan: JacobianPlan) -> str:
    r"""Write the folded tape graph as DOT, for ``dot -Tsvg``, with arcs that are labeled with elements.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> print(to_dot(parallel_jacobian(lambda x: np.sin(x), machines=1).plan(np.ones(3))))
    digraph tape {
      rankdir=LR;
      node [shape=box, style=filled, fillcolor=white, fontname="Helvetica"];
      0 [label="input\n(3,)"];
      subgraph cluster_1 {
        label="F1: |E| 3, tangent × 3"; style=filled; color="#dff3e2";
        1 [label="sin\n(3,)"];
      }
      output [label="output\n(3,)"];
      0 -> 1 [label="3"];
      1 -> output;
    }
    <BLANKLINE>
    """
    folded = fold(plan)
    numbered = list(enumerate(folded.groups))
    lines = [
        "digraph tape {",
        "  rankdir=LR;",
        '  node [shape=box, style=filled, fillcolor=white, fontname="Helvetica"];',
        *(f"  {_node(number, group)}" for number, group in numbered if group.chunk < 0),
    ]
    for row in link_rows(plan):
        color = STYLES[chunk_style(row.number - 1)].fill
        lines.append(f"  subgraph cluster_{row.number} {{")
        label = f"F{row.number}: |E| {count(row.edges)}, {row.sweep}"
        lines.append(f'    label="{label}"; style=filled; color="{color}";')
        lines += [
            f"    {_node(number, group)}" for number, group in numbered if group.chunk == row.number - 1
        ]
        lines.append("  }")
    lines.append(rf'  output [label="output\n{output_text(plan)}"];')
    lines += [f'  {b.tail} -> {b.head} [label="{count(b.elements)}"];' for b in folded.bundles]
    lines.append(f"  {folded.output} -> output;")
    return "\n".join([*lines, "}", ""])


def _node(number: int, group: Group) -> str:
    """Declare one group."""
    label = r"\n".join(line.replace("\\", r"\\").replace('"', r"\"") for line in group.lines)
    return f'{number} [label="{label}"];'
