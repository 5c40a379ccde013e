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


def plan_chart(title: str, rows: list[dict[str, Any]]) -> Any:
    """Return the chart of plans under limits: measured speed by limit and approach.

    Args:
        title: the chart's.
        rows: ``approach``, ``placement``, ``cpu_threads``, ``plan`` and ``throughput`` (samples/s);
            rows without a plan are left out, their bars' places stay empty.
    """
    import altair as alt

    drawn = [{**row, "limit": _limit(row)} for row in rows if row["plan"] is not None]
    limits = list(dict.fromkeys(_limit(row) for row in rows))
    names = list(dict.fromkeys(row["approach"] for row in rows))
    x = alt.X(
        "limit:N",
        title="GPUs on each node, CPU threads a GPU",
        sort=limits,
        axis=alt.Axis(labelAngle=0),
    )
    offset = alt.XOffset("approach:N", sort=names)
    scale = alt.Scale(type="log", domain=[_LEAST_SPEED, 30])
    y = alt.Y("throughput:Q", title="Measured speed, samples/s", scale=scale)
    base = alt.Chart(alt.Data(values=drawn)).encode(x=x, xOffset=offset)
    bars = base.mark_bar().encode(
        y=y,
        y2=alt.datum(_LEAST_SPEED),
        color=alt.Color(
            "approach:N",
            title=None,
            sort=names,
            scale=alt.Scale(domain=names, range=colours(len(names))),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=["approach:N", "plan:N", "iteration_time:Q", "throughput:Q"],
    )
    texts = base.mark_text(angle=270, align="left", dx=4, fontSize=9).encode(y=y, text="plan:N")
    told = f"{title} (n = {len(drawn)})"
    return themed((bars + texts).properties(width=520, height=HEIGHT, title=told))


#: Where the bars of `plan_chart` begin, samples/s.
_LEAST_SPEED = 0.1


def _limit(row: dict[str, Any]) -> str:
    return f"{row['placement']}, {row['cpu_threads']}"


def share_chart(rows: list[dict[str, Any]], num_gpus: int) -> Any:
    """Return the chart of shared GPUs: each job's normalised speed under each scheduler.

    Args:
        rows: ``scheduler``, ``job``, ``num_gpus``, ``plan`` and ``normalized_throughput``.
        num_gpus: GPUs in all.
    """
    import altair as alt

    drawn = [
        {**row, "label": f"{row['num_gpus']} GPU{'s' * (row['num_gpus'] != 1)}, {row['plan']}"}
        for row in rows
    ]
    jobs = list(dict.fromkeys(row["job"] for row in rows))
    names = list(dict.fromkeys(row["scheduler"] for row in rows))
    most = max((row["normalized_throughput"] for row in rows), default=1.0)
    x = alt.X(
        "normalized_throughput:Q",
        title=f"Speed over that on all {num_gpus} GPUs",
        scale=alt.Scale(domain=[0, max(1.0, most) * 1.35]),
    )
    y = alt.Y("job:N", title=None, sort=jobs)
    offset = alt.YOffset("scheduler:N", sort=names)
    base = alt.Chart(alt.Data(values=drawn)).encode(x=x, y=y, yOffset=offset)
    bars = base.mark_bar().encode(
        color=alt.Color(
            "scheduler:N",
            title=None,
            sort=names,
            scale=alt.Scale(domain=names, range=colours(len(names))),
            legend=alt.Legend(orient="top"),
        ),
    )
    texts = base.mark_text(align="left", dx=4).encode(text="label:N")
    title = f"{num_gpus} GPUs shared by {len(rows) // max(1, len(names))} jobs"
    height = 62 * max(1, len(jobs))
    return themed((bars + texts).properties(width=WIDTH, height=height, title=title))
