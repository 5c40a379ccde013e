"""The chart of loss differences: each plan's distance from the reference, and another seed's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.figures.look import themed
from windtunnel.report.palette import MUTED, SERIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.throughput.losses import LossDifference

WIDTH, HEIGHT = 460, 260


def loss_chart(found: Sequence[LossDifference], reference: str, window: int) -> Any:
    """Return the chart: a line a run; another seed of the reference, the control, grey and dashed.

    Args:
        found: differences, of equally many windows.
        reference: the run that the others are compared with.
        window: steps of a window.
    """
    import altair as alt

    control = [one for one in found if one.run.startswith(f"{reference}_")]
    others = [one for one in found if one not in control]
    shown = [*others, *control]
    rows = [
        {
            "run": one.title,
            "step": (place + 0.5) * window,
            "difference": float(value),
        }
        for one in shown
        for place, value in enumerate(one.differences)
    ]
    titles = [one.title for one in shown]
    colours = [SERIES[1 + place % (len(SERIES) - 1)][0] for place in range(len(others))]
    colours += [MUTED[0]] * len(control)
    strokes = [[1, 0]] * len(others) + [[4, 3]] * len(control)
    steps = len(shown[0].differences) * window
    legend = alt.Legend(orient="top", columns=2, labelLimit=300, symbolType="stroke")
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=1.4)
        .encode(
            x=alt.X("step:Q", title="Iteration", axis=alt.Axis(grid=False, format=",d")),
            y=alt.Y(
                "difference:Q",
                title=f"|loss - loss({reference})|, mean of {window} iterations",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~g", tickCount=5),
            ),
            color=alt.Color(
                "run:N",
                title=None,
                sort=titles,
                scale=alt.Scale(domain=titles, range=colours),
                legend=legend,
            ),
            strokeDash=alt.StrokeDash(
                "run:N",
                title=None,
                sort=titles,
                scale=alt.Scale(domain=titles, range=strokes),
                legend=legend,  # the same, so that both are one
            ),
            tooltip=["run:N", "step:Q", alt.Tooltip("difference:Q", format=".3g")],
        )
        .properties(
            width=WIDTH, height=HEIGHT, title=f"Loss against plan {reference}, n = {steps} steps"
        )
    )
    return themed(chart)
