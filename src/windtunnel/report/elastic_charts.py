"""Charts of elastic runs: schedulers compared with and without penalty, and who held which GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import beside, on_paper, over, titled
from windtunnel.report.chart.axes import Axis, names
from windtunnel.report.chart.series import FONT, Series
from windtunnel.report.palette import MUTED, colours

if TYPE_CHECKING:
    from windtunnel.report.chart.marks import Tips
    from windtunnel.sim.outcome import Outcome
    from windtunnel.study.elastic_comparison import ElasticComparison

#: (key, title of the x axis).
MEASURES: tuple[tuple[str, str], ...] = (
    ("avg_jct", "Completion time, mean, h"),
    ("p99_jct", "Completion time, P99, h"),
)
_HOUR = 3600.0
#: Height of a bar, width of a panel, px.
_BAR, _WIDTH = 13, 190
#: Width of the time-line and height of a GPU in it, px.
_LINE_WIDTH, _GPU = 760, 6


def comparison_chart(comparison: ElasticComparison) -> Any:
    """Return mean and P99 completion times: a row a trace, a bar a scheduler and penalty."""
    rows = comparison.rows()
    traces = list(dict.fromkeys(row["trace"] for row in rows))
    panels = [_bars(rows, trace, *measure) for trace in traces for measure in MEASURES]
    return on_paper(beside(panels, len(MEASURES), spacing=18, own=("x", "y", "yOffset")))


def _bars(rows: list[dict[str, Any]], trace: str, key: str, title: str) -> Any:
    here = [row for row in rows if row["trace"] == trace]
    policies = list(dict.fromkeys(row["policy"] for row in here))
    launches = list(dict.fromkeys(_launch(row["penalty"]) for row in here))
    shown = [
        {
            "policy": row["policy"],
            "penalty": _launch(row["penalty"]),
            "hours": row[key] / _HOUR,
            "text": f"{row[key] / _HOUR:.2f}",
        }
        for row in here
        if row[key] is not None
    ]
    paint = [MUTED[1], *colours(2)[1:]][: len(launches)]
    penalties = Series(
        "penalty",
        launches,
        paint,
        title="a launch or change costs",
        font=FONT,
        where="bottom",
        legend=True,
    )
    drawn = marks.bars(
        shown, Axis("hours", title), names("policy", policies), penalties, text="text"
    )
    about = titled(f"{trace}, n = {here[0]['num_finished']:,} jobs")
    height = _BAR * len(policies) * len(launches) + 6 * len(policies)
    return over(drawn, width=_WIDTH, height=height, title=about)


def _launch(penalty: float) -> str:
    return f"{penalty:g} s" if penalty else "nothing"


def timeline_chart(outcome: Outcome) -> Any:
    """Return who held which GPUs when: a bar a stay on each node, launching grey."""
    rows = gpu_rows(outcome)
    models = sorted({row["model"] for row in rows if not row["launching"]})
    total = outcome.cluster.num_gpus
    x = Axis("start", "Time since the trace's start, h", end="end", count=15, grid=False)
    edges = _edges(outcome)
    y = Axis("low", "GPU, node by node", domain=(total, 0), ticks=edges, end="high")
    paint = ["#d9d5d1", *colours(len(models) + 1)[1:]]
    shown = Series(
        "shown", ["launching", *models], paint, font=FONT, where="bottom", width=_LINE_WIDTH
    )
    tips: Tips = {"job_id": ("job", ""), "plan": ("plan", ""), "gpus": ("GPUs", ",~r")}
    bars = marks.gantt(rows, x, y, shown, tips=tips, stroke="white", strokeWidth=0.25)
    title = f"{outcome.settings['policy']}: {len(outcome.jobs):,} jobs on {total:,} GPUs"
    return on_paper(over(bars, width=_LINE_WIDTH, height=_GPU * total, title=titled(title)))


def gpu_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the bars of the time-line.

    GPUs of a node are numbered as they come free, the lowest first: which of a node's GPUs a job
    held is not part of the run.

    Returns:
        A row a stay's contiguous GPUs, launching and running apart: ``job_id``, ``model``,
        ``shown`` (the model, or launching), ``plan``, ``gpus`` (of the job), ``start`` and ``end``
        (h), ``low`` and ``high`` (GPU numbers), ``launching``.
    """
    from windtunnel.sim.elastic.measures import held

    flight, found = outcome.flight, outcome.flight.stretches
    if found is None:
        raise ValueError("the run is not elastic: its policy resizes no jobs")
    seconds = held(outcome)
    sizes = [kind.gpus for kind in outcome.cluster.node_types for _ in range(kind.count)]
    first = [sum(sizes[:node]) for node in range(len(sizes))]
    busy: list[list[float]] = [[0.0] * size for size in sizes]
    ids, models = (outcome.jobs[name].to_pylist() for name in ("job_id", "template"))
    rows = []
    order = sorted(range(len(seconds)), key=lambda s: (float(flight.segment_start[s]), s))
    for stay in order:
        job = int(flight.segment_job[stay])
        start = float(flight.segment_start[stay])
        ready, end = start + float(found.penalty_time[stay]), start + float(seconds[stay])
        about = {
            "job_id": ids[job],
            "model": models[job] or "(none)",
            "plan": str(found.plan[stay]),
            "gpus": float(found.gpus[stay]),
        }
        begin, stop = int(flight.node_offset[stay]), int(flight.node_offset[stay + 1])
        for node, gpus in zip(flight.nodes[begin:stop], flight.node_gpus[begin:stop], strict=True):
            idle = [slot for slot, until in enumerate(busy[node]) if until <= start]
            for low, high in _runs(idle[: int(gpus)]):
                busy[node][low:high] = [end] * (high - low)
                for since, until, launching in ((start, ready, True), (ready, end, False)):
                    if until > since:
                        bar = {
                            "start": since / _HOUR,
                            "end": until / _HOUR,
                            "low": first[node] + low,
                            "high": first[node] + high,
                            "launching": launching,
                            "shown": "launching" if launching else about["model"],
                        }
                        rows.append({**about, **bar})
    return rows


def _runs(slots: list[int]) -> list[tuple[int, int]]:
    """Return ascending slots as ranges [low, high)."""
    runs: list[tuple[int, int]] = []
    for slot in slots:
        if runs and runs[-1][1] == slot:
            runs[-1] = (runs[-1][0], slot + 1)
        else:
            runs.append((slot, slot + 1))
    return runs


def _edges(outcome: Outcome) -> list[int]:
    """Return the GPU numbers at which nodes begin, and the last's end."""
    edges = [0]
    for kind in outcome.cluster.node_types:
        for _ in range(kind.count):
            edges.append(edges[-1] + kind.gpus)
    return edges
