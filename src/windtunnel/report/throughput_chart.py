"""The chart of a resource sensitivity curve: speed against GPUs, and the plan at each size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.figures.look import themed
from windtunnel.report.palette import MUTED, colours

if TYPE_CHECKING:
    from windtunnel.throughput.training import TrainingModel

WIDTH, HEIGHT = 420, 260


def curve_chart(model: TrainingModel, rows: list[dict[str, Any]]) -> Any:
    """Return the chart: a step line of the envelope, a point and its plan where it rises.

    Args:
        model: the training model.
        rows: ``gpus``, ``num_gpus``, ``plan``, ``throughput`` (samples/s) and ``measured`` a size;
            sizes without a plan are left out.
    """
    import altair as alt

    drawn = [row for row in rows if row["plan"] is not None]
    rises = [
        {**row, "kind": "measured" if row["measured"] else "predicted"}
        for row in drawn
        if row["gpus"] == row["num_gpus"]
    ]
    most = max((row["throughput"] for row in drawn), default=1.0)
    x = alt.X(
        "gpus:Q",
        title="GPUs, at most",
        scale=alt.Scale(type="log", base=2, nice=False, padding=30),
        axis=alt.Axis(format="d", grid=False),
    )
    y = alt.Y("throughput:Q", title="Speed, samples/s", scale=alt.Scale(domain=[0, 1.12 * most]))
    line = (
        alt.Chart(alt.Data(values=drawn))
        .mark_line(interpolate="step-after", color=MUTED[0], strokeWidth=1.5)
        .encode(x=x, y=y)
    )
    kinds = ["measured", "predicted"]
    points = (
        alt.Chart(alt.Data(values=rises))
        .mark_point(filled=True, size=55, opacity=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=kinds, range=colours(2)),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("plan:N", title="Plan"),
                alt.Tooltip("placement:N", title="Placement"),
                alt.Tooltip("num_gpus:Q", title="GPUs"),
                alt.Tooltip("num_cpus:Q", title="CPUs"),
                alt.Tooltip("throughput:Q", title="samples/s", format=".4g"),
            ],
        )
    )
    names = (
        alt.Chart(alt.Data(values=rises))
        .mark_text(dy=-11, align="center", fontSize=10)
        .encode(x=x, y=y, text="plan:N")
    )
    told = sum(row.iteration_time is not None for row in model.table.rows)
    title = f"{model.title}, {model.global_batch_size} samples an iteration (n = {told} points)"
    return themed((line + points + names).properties(width=WIDTH, height=HEIGHT, title=title))
