"""Which numbers of a run are shown, in which unit, and which way is better; and differences.

The one place that knows that a shorter wait and a higher utilisation are good news; the HTML page
and the terminal both draw from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from windtunnel.report.format import DUST, FORMATTERS, exact_seconds, is_known, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from windtunnel.sim.outcome import Outcome

Kind = Literal[
    "duration", "count", "number", "percent", "index", "gpu_time",
    "energy", "power", "carbon", "node_time", "word",
]  # fmt: skip
#: Which way is good; None where neither is.
Better = Literal["low", "high"] | None
Verdict = Literal["better", "worse", "neutral", "same", "unknown"]

#: What a metric is counted in where it is written as a number, by kind; the others have no unit.
_UNITS: dict[str, str] = {
    "duration": "s",
    "gpu_time": "GPU s",
    "node_time": "node s",
    "energy": "J",
    "power": "W",
    "carbon": "kg CO2eq",
}

#: Relative differences below this read as "no change".
SAME = 5e-4


@dataclass(frozen=True)
class Measure:
    """One metric of a run as it is shown.

    Attributes:
        key: key of ``Outcome.metrics()``.
        label: what to call it, without the unit.
        kind: how to print it (a key of `FORMATTERS`).
        better: which way is good; None where neither is.
        group: heading it stands under.
        doc: its definition in a sentence.
        optional: shown only where some run has a value other than 0.
    """

    key: str
    label: str
    kind: Kind
    better: Better
    group: str
    doc: str = ""
    optional: bool = False

    @property
    def unit(self) -> str:
        """Unit of the number in `Outcome.metrics`; empty where it has none."""
        return _UNITS.get(self.kind, "")

    def text(self, value: float | None) -> str:
        """Return a value of this metric for people."""
        return FORMATTERS[self.kind](value)

    def exact(self, value: float | None) -> str:
        """Return a value of this metric in base units, for tooltips."""
        if self.kind == "duration":
            return exact_seconds(value)
        if self.kind == "word":
            return self.text(value)
        return str(value) if is_known(value) else "unknown"


def own(outcomes: Iterable[Outcome]) -> list[Measure]:
    """Return the metrics of a user's own that runs were asked for, in order."""
    keys = dict.fromkeys(key for outcome in outcomes for key in outcome.own)
    return [Measure(key, key, "number", None, "Metrics of your own") for key in keys]


#: A metric that is shown only where some run has a value other than 0.
optional = partial(Measure, optional=True)


def _spread(name: str, label: str, group: str, kind: Kind, doc: str) -> list[Measure]:
    points = {"avg": "mean", "p50": "median", "p90": "P90", "p99": "P99", "max": "longest"}
    if kind != "duration":
        points = {"avg": "mean", "p90": "P90", "p99": "P99"}
    return [
        Measure(f"{key}_{name}", f"{label}, {word}", kind, "low", group, doc)
        for key, word in points.items()
    ]


_JCT = "end - submission, over finished jobs"
_WAIT = "first start - submission, over started jobs"
_SLOW = "completion time / run time (runs under 10 s count as 10 s), over finished jobs"

_JAIN = (
    "how equal the share of the GPU time it asked for is that each {} had: 1 all alike, 1/n one "
    "has all"
)

_HELD = "held GPU time"


#: Of runs with failures (`windtunnel.sim.observe.goodput`).
_GOODPUT: tuple[Measure, ...] = (
    optional("goodput", "Goodput", "percent", "high", "Goodput", f"productive / {_HELD}"),
    optional("badput_initialization", "Initialisation", "percent", "low", "Goodput",
             f"first startups of jobs / {_HELD}"),
    optional("badput_checkpoint", "Checkpoints", "percent", "low", "Goodput",
             f"writing of checkpoints / {_HELD}"),
    optional("badput_restart", "Restarts", "percent", "low", "Goodput",
             f"what going on after a stop costs / {_HELD}"),
    optional("badput_lost_work", "Lost work", "percent", "low", "Goodput",
             f"work that failures undid / {_HELD}"),
    optional("badput_slowdown", "Slow-downs", "percent", "low", "Goodput",
             f"what slow-downs cost / {_HELD}"),
    optional("badput_waiting_for_replacement", "Waiting for replacement", "percent", "low",
             "Goodput", f"GPU time that stopped jobs waited for, and did not hold / {_HELD}"),
    optional("ettr", "Effective training time ratio", "percent", "high", "Goodput",
             "productive time / time from submission to end, jobs weighed by their GPUs"),
    optional("mttf", "Mean time to failure", "duration", "high", "Goodput",
             "time that jobs ran / failures that stopped them"),
)  # fmt: skip
MEASURES: tuple[Measure, ...] = (
    *_spread("jct", "Completion time", "Completion", "duration", _JCT),
    *_spread("wait", "Wait", "Waiting", "duration", _WAIT),
    Measure("num_waited", "Jobs that waited", "count", "low", "Waiting", "jobs with a wait over 0"),
    *_spread("bounded_slowdown", "Bounded slowdown", "Waiting", "number", _SLOW),
    optional("num_missed_deadlines", "Deadlines missed", "count", "low", "Waiting",
             "jobs that end after their deadline, or have not ended by then"),
    optional("slo_attainment", "Deadlines met", "percent", "high", "Waiting",
             "share of the jobs with a deadline that ended by it"),
    optional("avg_tardiness", "Tardiness, mean", "duration", "low", "Waiting",
             "time by which finished jobs passed their deadlines, 0 for those in time"),
    Measure("utilization", "Utilisation", "percent", "high", "Cluster",
            "GPU-seconds held / GPU-seconds up from first submission to last end"),
    Measure("offered_load", "Offered load", "percent", None, "Cluster",
            "GPU time that jobs ask for / GPU time up from first to last counted submission"),
    Measure("stability", "Queue", "word", None, "Cluster",
            "whether the waiting work settles; if not, waits tell how long the run is"),
    Measure("makespan", "Makespan", "duration", "low", "Cluster",
            "last end, counted from time 0 of the trace"),
    Measure("gpu_time", "GPU time held", "gpu_time", None, "Cluster",
            "GPUs x seconds on them, overheads of preemption included"),
    optional("num_preemptions", "Preemptions", "count", "low", "Cluster",
             "times a running job was taken off its GPUs"),
    optional("avg_preempted_time", "Time preempted, mean", "duration", "low", "Cluster",
             "time a finished job spent off its GPUs after its first start"),
    optional("reconfigurations_per_job", "Changes a job, mean", "number", "low", "Cluster",
             "times a job was given other nodes, GPUs, cores or another plan after its first "
             "launch"),
    optional("penalty_gpu_time", "GPU time launching", "gpu_time", "low", "Cluster",
             "GPU-seconds of launches and changes, without progress"),
    optional("promises_kept_running", "Promises kept", "percent", "high", "Cluster",
             "guaranteed jobs at least as fast while running as what was asked for"),
    optional("jain_user", "Jain\u2019s index over users", "index", "high", "Sharing",
             _JAIN.format("user")),
    optional("jain_vc", "Jain\u2019s index over virtual clusters", "index", "high", "Sharing",
             _JAIN.format("virtual cluster")),
    optional("num_failures", "Failures", "count", "low", "Cluster",
             "times a failure or a killing outage stopped a running job"),
    optional("num_restarts", "Restarts", "count", None, "Cluster",
             "times a job went on after a failure or an outage"),
    optional("lost_gpu_time", "GPU time lost", "gpu_time", "low", "Cluster",
             "GPU-seconds of work that failures undid"),
    *_GOODPUT,
    Measure("num_jobs", "Jobs", "count", None, "Jobs", "jobs in the run"),
    Measure("num_finished", "Finished", "count", "high", "Jobs", "jobs that ran to their end"),
    optional("num_failed", "Ended by a failure", "count", "low", "Jobs",
             "jobs that a failure ended"),
    optional("num_running", "Still running", "count", None, "Jobs",
             "jobs on GPUs when the run ended"),
    optional("num_waiting", "Still waiting", "count", "low", "Jobs",
             "jobs in the queue when the run ended"),
    optional("num_not_submitted", "Not yet submitted", "count", None, "Jobs",
             "jobs whose submission lies after the end of the run"),
    optional("num_rejected", "Rejected", "count", "low", "Jobs",
             "jobs that fit the cluster at no time"),
)  # fmt: skip
BY_KEY: dict[str, Measure] = {measure.key: measure for measure in MEASURES}


#: Metrics of one run that a terminal shows, in order; a page shows them all.
SHORT: tuple[str, ...] = (
    *("avg_jct", "p50_jct", "p90_jct", "p99_jct"),
    *("avg_wait", "p50_wait", "p90_wait", "p99_wait", "max_wait", "num_waited"),
    *("num_missed_deadlines", "slo_attainment", "avg_tardiness"),
    *("avg_bounded_slowdown", "offered_load", "stability", "utilization"),
    *("makespan", "gpu_time", "num_preemptions"),
    *("reconfigurations_per_job", "penalty_gpu_time", "promises_kept_running"),
    *("jain_user", "jain_vc"),
    *("num_failures", "num_restarts", "lost_gpu_time"),
    *(measure.key for measure in _GOODPUT),
    *("num_jobs", "num_finished", "num_failed", "num_running", "num_waiting", "num_rejected"),
)


def in_short(outcomes: Iterable[Outcome]) -> list[Measure]:
    """Return the measures of runs that a terminal shows, in order."""
    runs = list(outcomes)
    known = {measure.key for measure in shown([run.metrics() for run in runs])}
    return [*(BY_KEY[key] for key in SHORT if key in known), *own(runs)]


def shown(
    runs: Sequence[Mapping[str, Any]],
    measures: Sequence[Measure] = MEASURES,
    nothing: float = DUST,
) -> list[Measure]:
    """Return the measures worth a row: optional ones only where some run has a value.

    Args:
        runs: numbers by key.
        measures: to choose from.
        nothing: values no larger than this are none.
    """
    return [
        m
        for m in measures
        if not m.optional or any(abs(run.get(m.key) or 0) > nothing for run in runs)
    ]


@dataclass(frozen=True)
class Difference:
    """How a value differs from the first run's.

    Attributes:
        text: arrow and amount (``"\u25bc 61 %"``), or words; empty where there is nothing to state.
        verdict: better, worse, neutral (neither way is good), same, or unknown.
        relative: (value - base) / base; None where the base is 0 or a value is missing.
    """

    text: str
    verdict: Verdict
    relative: float | None = None

    @property
    def words(self) -> str:
        """The text with its verdict, so that colour is never the only sign."""
        verdict = self.verdict if self.verdict in {"better", "worse"} else ""
        return f"{self.text} {verdict}".strip()


def difference(measure: Measure, base: float | None, value: float | None) -> Difference:
    """Return how ``value`` differs from ``base`` and whether that is good news.

    >>> difference(BY_KEY["avg_jct"], 100.0, 39.0).words
    '\u25bc 61 % (1 m 01 s) better'
    >>> difference(BY_KEY["num_preemptions"], 0, 7).words
    '\u25b2 7 from 0 worse'
    >>> difference(BY_KEY["avg_wait"], None, 7.0).verdict
    'unknown'
    """
    if measure.kind == "word" or base is None or value is None:
        return Difference("", "unknown")
    if not (is_known(base) and is_known(value)):
        return Difference("", "unknown")
    change = value - base
    relative = change / abs(base) if base else None
    dust = measure.kind == "duration" and abs(change) < DUST
    if change == 0 or dust or (relative is not None and abs(relative) < SAME):
        return Difference("=", "same", 0.0)
    arrow = "\u25b2" if change > 0 else "\u25bc"
    if measure.kind == "percent":
        points = abs(change) * 100
        amount = f"{points:.1f} points" if points < 9.95 else f"{points:.0f} points"  # noqa: PLR2004
    elif relative is None:
        amount = f"{measure.text(abs(change))} from 0"
    else:
        amount = f"{percent(abs(relative))} ({measure.text(abs(change))})"
    if measure.better is None:
        return Difference(f"{arrow} {amount}", "neutral", relative)
    good = (change < 0) == (measure.better == "low")
    return Difference(f"{arrow} {amount}", "better" if good else "worse", relative)
