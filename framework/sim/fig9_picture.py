"""Fig. 9 as a picture: the three measured curves, their spread, and what the paper reports."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from framework.errors import BadRequest
from framework.files import put
from framework.sim.fig9 import CURVES, PAPER, PAPER_C, Result, Sweep, curve

_COLOURS = {0.0: "#0072b2", 0.5: "#d55e00", 1.0: "#009e73"}  # told apart by the colour-blind, too
_SIGNS = {0.0: "o", 0.5: "s", 1.0: "^"}
_INK = "#333333"


def check(path: Path) -> None:
    """Can it be drawn at all? Asked before the long run."""
    known = _figure().canvas.get_supported_filetypes()
    if _kind(path) not in known:
        raise BadRequest(f"{path}: no picture can be written as {path.suffix}; known: {', '.join(sorted(known))}")


def draw(path: Path, sweep: Sweep, results: Sequence[Result]) -> None:
    figure = _figure()
    axes = figure.add_subplot()
    for ucast in CURVES:
        _curve(axes, results, ucast)
    for ucast, value in PAPER.items():
        axes.plot(
            PAPER_C, value, _SIGNS[ucast], ms=9, mfc="none", mec=_COLOURS[ucast], mew=1.8, zorder=5, clip_on=False
        )
    axes.plot([], [], "o", ms=9, mfc="none", mec=_INK, mew=1.8, label=f"the paper's values at {PAPER_C} %")
    _frame(axes, _small_print(sweep))
    picture = io.BytesIO()
    figure.savefig(picture, format=_kind(path), dpi=130)
    put(path, picture.getvalue())


def _curve(axes: Any, results: Sequence[Result], ucast: float) -> None:
    points = curve(results, ucast)
    x = [p.conflict for p in points]
    colour = _COLOURS[ucast]
    axes.fill_between(
        x,
        [p.mean - p.deviation for p in points],
        [min(100.0, p.mean + p.deviation) for p in points],
        color=colour,
        alpha=0.14,
        linewidth=0,
    )
    label = f"ucast {100 * ucast:.0f} %"
    axes.plot(x, [p.mean for p in points], _SIGNS[ucast] + "-", color=colour, lw=2, ms=5, label=label, clip_on=False)


def _frame(axes: Any, small: str) -> None:
    axes.set(
        xlim=(0, 100),
        ylim=(0, 100),
        xlabel="rate of conflicting methods [%]",
        ylabel="rate of messages not ordered [%]",
    )
    axes.set_xticks(range(0, 101, 20))
    axes.set_yticks(range(0, 101, 20))
    axes.set_title("Evaluation: messages that need no order (P0, Fig. 9)", fontsize=12, color=_INK, pad=12)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.annotate(
        small, (1, 0), (0, -44), "axes fraction", "offset points", ha="right", va="top", fontsize=7, color="#777777"
    )
    axes.legend(loc="lower left", frameon=True, framealpha=0.9, edgecolor="none")


def _small_print(sweep: Sweep) -> str:
    w = sweep.workload
    return (
        f"{w.nodes} computers, {w.objects} objects, {w.nodes * w.transactions} transactions, {sweep.seeds} seeds; "
        "band: standard deviation of a run"
    )


def _figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BadRequest("drawing needs matplotlib: pip install 'obo[plot]'") from None
    return Figure(figsize=(6.4, 4.8), layout="constrained")


def _kind(path: Path) -> str:
    return path.suffix.lower().lstrip(".") or "png"
