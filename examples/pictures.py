"""Pictures of the examples: saved to ``out/`` if matplotlib is installed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

OUT = Path("out")


def picture(name: str, draw: Callable[..., None], *, panels: int = 1) -> None:
    """Let ``draw(*axes)`` draw on panels side by side, and save the result as ``out/NAME.png``."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("no picture: matplotlib is not installed (pip install 'tapesplit[plot]')")
        return
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, panels, figsize=(5.5 * panels, 4), layout="constrained", squeeze=False)
    draw(*_cleaned(axes[0]))
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"picture      {path.resolve()}")


def _cleaned(axes: Any) -> Any:
    """Take away the frame where no axis is."""
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    return axes
