"""Read a plan, then make the Jacobian cheaper.

A sensor array of 300 values passes through a filter, a summary and a reconstruction; the summary
decides what the Jacobian costs. Run this file with ``python examples/reading_a_plan.py``, or open it as a
notebook (its cells are marked with ``# %%``), where the plans draw themselves.
"""

# %%
import textwrap
from pathlib import Path

import autograd.numpy as np
import numpy as onp
from autograd import jacobian

from tapesplit import parallel_jacobian
from tapesplit.draw import advice, decisions

OUT = Path("out")
SENSORS = 300
random = onp.random.default_rng(7)
smooth = onp.exp(-0.1 * onp.abs(onp.subtract.outer(onp.arange(SENSORS), onp.arange(SENSORS))))
back = random.standard_normal((SENSORS, SENSORS)) / SENSORS


# %% [markdown]
# ## The first version: the summary has 240 values


# %%
def reconstruct(x, summary):
    """Filter, summarize, reconstruct."""
    for _ in range(4):
        x = np.tanh(smooth @ x / 10)
    z = np.tanh(summary @ x)
    y = summary.T @ z
    for _ in range(4):
        y = y + np.sin(back @ y)
    return y


wide = random.standard_normal((240, SENSORS)) / onp.sqrt(SENSORS)
x = random.standard_normal(SENSORS)
plan = parallel_jacobian(reconstruct, machines=1).plan(x, wide)
print(plan)
plan  # noqa: B018 - in a notebook this cell shows the picture

# %% [markdown]
# The interface of 240 elements is little narrower than the 300 inputs, so cutting there gains little. This is
# what the plan says about itself:


# %%
def show(heading, sentences):
    """Print sentences as a list below a heading."""
    print(f"\n{heading}")
    for sentence in sentences:
        print(textwrap.fill(sentence, 100, initial_indent="- ", subsequent_indent="  "))


show("Why this plan", decisions(plan))
show("What would make it faster", advice(plan))

# %% [markdown]
# ## The second version: most of the summary is noise, and six values do
#
# The singular values of a real summary tell how many; here six are kept.

# %%
narrow = wide[:6]
jac = parallel_jacobian(reconstruct, machines=1)
better = jac.plan(x, narrow)
print(f"\n{better}")
better  # noqa: B018 - in a notebook this cell shows the picture

# %%
gain = plan.makespan / better.makespan
print(f"\nmakespan {plan.makespan} fma before, {better.makespan} fma after: {gain:.0f} times less")
assert min(better.chain.sizes) == 6
assert gain > 10

# %% [markdown]
# The plan is reused as long as the tape keeps its structure. When it does not, the cache says what changed:

# %%
jac(x, wide[:6])
jac(x, wide[:7])
print(f"\na new plan for seven values:\n{jac.cache_info().last_miss}")
assert jac.cache_info().misses == 2

# %% [markdown]
# The numbers are those of autograd, and the report has pictures of all this.

# %%
expected = jacobian(reconstruct)(x, narrow)
assert onp.abs(jac(x, narrow) - expected).max() <= 1e-12 * onp.abs(expected).max()
OUT.mkdir(exist_ok=True)
report, picture = OUT / "reading_a_plan.html", OUT / "reading_a_plan.svg"
better.to_html(report)
better.draw(picture)
print(f"\nreport       {report.resolve()}")
print(f"picture      {picture.resolve()}")
