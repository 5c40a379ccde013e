"""The chart of a resource sensitivity curve: speed against GPUs, and the plan at each size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import on_paper, over
from windtunnel.report.chart.axes import Axis, names
from windtunnel.report.chart.series import FONT, Series
from windtunnel.report.palette import MUTED, SERIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.chart.marks import Tips
    from windtunnel.throughput.losses import LossDifference
    from windtunnel.throughput.training import TrainingModel


#: Width and height of a plotting area, px.
WIDTH, HEIGHT = 460, 260


def curve_chart(model: TrainingModel, rows: list[dict[str, Any]]) -> Any:
    """Return the chart: a step line of the envelope, a point and its plan where it rises.

    Args:
        model: the training model.
        rows: ``gpus``, ``num_gpus``, ``plan``, ``throughput`` (samples/s) and ``measured`` a size;
            sizes without a plan are left out.
    """
    drawn = [row for row in rows if row["plan"] is not None]
    rises = [
        {**row, "kind": "measured" if row["measured"] else "predicted"}
        for row in drawn
        if row["gpus"] == row["num_gpus"]
    ]
    most = max((row["throughput"] for row in drawn), default=1.0)
    scale = {"base": 2, "nice": False, "padding": 30}
    x = Axis("gpus", "GPUs, at most", "log", grid=False, scale=scale, more={"format": "d"})
    y = Axis("throughput", "Speed, samples/s", domain=(0, 1.12 * most))
    tips: Tips = {
        "plan": ("Plan", ""),
        "placement": ("Placement", ""),
        "num_gpus": ("GPUs", ",d"),
        "num_cpus": ("CPUs", ",d"),
        "throughput": ("samples/s", ".4g"),
    }
    layers = [
        marks.steps(drawn, x, y, color=MUTED[0], strokeWidth=1.5),
        marks.dots(
            rises, x, y, Series("kind", ["measured", "predicted"], font=FONT), size=55, tips=tips
        ),
        marks.texts(rises, x, y, "plan", dy=-11, align="center", fontSize=10),
    ]
    n = sum(row.iteration_time is not None for row in model.table.rows)
    title = f"{model.title}, {model.global_batch_size} samples an iteration (n = {n} points)"
    return on_paper(over(*layers, width=WIDTH, height=HEIGHT, title=title))


def plan_chart(title: str, rows: list[dict[str, Any]]) -> Any:
    """Return the chart of plans under limits: measured speed by limit and approach.

    Args:
        title: the chart's.
        rows: ``approach``, ``placement``, ``cpu_threads``, ``plan`` and ``throughput`` (samples/s);
            rows without a plan are left out, their bars' places stay empty.
    """
    drawn = [{**row, "limit": _limit(row)} for row in rows if row["plan"] is not None]
    limits = list(dict.fromkeys(_limit(row) for row in rows))
    found = list(dict.fromkeys(row["approach"] for row in rows))
    approaches = Series("approach", found, font=FONT, legend=True, width=520)
    across = "GPUs on each node, CPU threads a GPU"
    x = names("limit", limits, across, more={"labelAngle": 0, "domain": True, "ticks": True})
    floored = [{**row, "from": _LEAST_SPEED} for row in drawn]
    y = Axis("throughput", "Measured speed, samples/s", "log", (_LEAST_SPEED, 30), end="from")
    tips: Tips = {
        "approach": ("approach", ""),
        "plan": ("plan", ""),
        "iteration_time": ("s an iteration", ".4g"),
        "throughput": ("samples/s", ".4g"),
    }
    bars = marks.bars(floored, y, x, approaches, upright=True, text="plan", tips=tips)
    return on_paper(over(bars, width=520, height=HEIGHT, title=f"{title} (n = {len(drawn)})"))


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
    drawn = [
        {**row, "label": f"{row['num_gpus']} GPU{'s' * (row['num_gpus'] != 1)}, {row['plan']}"}
        for row in rows
    ]
    jobs = list(dict.fromkeys(row["job"] for row in rows))
    found = list(dict.fromkeys(row["scheduler"] for row in rows))
    most = max((row["normalized_throughput"] for row in rows), default=1.0)
    title = f"Speed over that on all {num_gpus} GPUs"
    x = Axis("normalized_throughput", title, domain=(0, max(1.0, most) * 1.35))
    schedulers = Series("scheduler", found, font=FONT, legend=True)
    bars = marks.bars(drawn, x, names("job", jobs), schedulers, text="label")
    shared = f"{num_gpus} GPUs shared by {len(rows) // max(1, len(found))} jobs"
    return on_paper(over(bars, width=WIDTH, height=62 * max(1, len(jobs)), title=shared))


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
        width=WIDTH,
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
