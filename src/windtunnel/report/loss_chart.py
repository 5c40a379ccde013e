"""The chart of loss differences: each plan's distance from the reference, and another seed's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import on_paper, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import FONT, Series
from windtunnel.report.palette import MUTED, SERIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.chart.marks import Tips
    from windtunnel.throughput.losses import LossDifference

WIDTH, HEIGHT = 460, 260


def loss_chart(found: Sequence[LossDifference], reference: str, window: int) -> Any:
    """Return the chart: a line a run; another seed of the reference, the control, grey and dashed.

    Args:
        found: differences, of equally many windows.
        reference: the run that the others are compared with.
        window: steps of a window.
    """
    control = [one for one in found if one.run.startswith(f"{reference}_")]
    others = [one for one in found if one not in control]
    shown = [*others, *control]
    rows = [
        {"run": one.title, "step": (place + 0.5) * window, "difference": float(value)}
        for one in shown
        for place, value in enumerate(one.differences)
    ]
    paint = [SERIES[1 + place % (len(SERIES) - 1)][0] for place in range(len(others))]
    runs = Series(
        "run",
        [one.title for one in shown],
        [*paint, *[MUTED[0]] * len(control)],
        [*[[1, 0]] * len(others), *[[4, 3]] * len(control)],
        legend=True,
        font=FONT,
        room=WIDTH,
        symbol="stroke",
    )
    x = Axis("step", "Iteration", grid=False, more={"format": ",d"})
    title = f"|loss - loss({reference})|, mean of {window} iterations"
    y = Axis("difference", title, "log", more={"format": "~g"})
    tips: Tips = {
        "run": ("run", ""),
        "step": ("iteration", ",d"),
        "difference": ("difference", ".3g"),
    }
    chart = marks.lines(rows, x, y, runs, tips=tips, strokeWidth=1.4)
    steps = len(shown[0].differences) * window
    about = f"Loss against plan {reference}, n = {steps} steps"
    return on_paper(over(chart, width=WIDTH, height=HEIGHT, title=about))
