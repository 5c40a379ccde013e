"""A trace described: every number that the terminal, the page and ``--json`` of it show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.characterize import overview, shares
from windtunnel.characterize.facts import source_fact
from windtunnel.characterize.headlines import headlines
from windtunnel.characterize.summary import cluster_summary
from windtunnel.report import headline_rows, summary_rows
from windtunnel.report.format import count, duration, exact_seconds, gpu_time, percent, plural
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.sections import Fact
from windtunnel.report.unanswered import Unanswered, unanswered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windtunnel.characterize.headlines import Headline
    from windtunnel.characterize.summary import ClusterSummary
    from windtunnel.report.measured_use import MeasuredUse
    from windtunnel.traces.trace import Trace

#: Properties of jobs whose shares are shown: column -> heading.
SHARES: dict[str, str] = {
    "num_gpus": "By GPUs of the job",
    "vc": "By virtual cluster",
    "workload": "By workload",
    "status": "By status",
}
#: The steps of `describe_trace`.
STEPS = len(SHARES) + 3
#: Facts of jobs that a source may tell differently.
_SOURCE_FACTS = ("duration", "wait", "gpu_time", "num_gpus")


@dataclass(frozen=True)
class Description:
    """A trace in numbers.

    Attributes:
        trace: the trace.
        overview: of `windtunnel.characterize.overview`.
        shares: property of `SHARES` -> rows of `windtunnel.characterize.states`.
        summary: the cluster in one row; by the source's own figures where ``source_times``.
        source_times: whether the row is made of the source's own run, queueing and GPU times.
        other: the row made the other way; None where the source has no times of its own.
        headlines: the headline numbers.
        telemetry: what telemetry says.
        notes: what a reader must know, one sentence each.
    """

    trace: Trace
    overview: dict[str, Any]
    shares: dict[str, list[dict[str, Any]]]
    summary: ClusterSummary
    source_times: bool
    other: ClusterSummary | None
    headlines: list[Headline]
    telemetry: tuple[MeasuredUse, ...]
    notes: tuple[str, ...]

    @property
    def not_had(self) -> list[Unanswered]:
        """Every number that cannot be had, by reason."""
        return unanswered(
            [*summary_rows.not_had(self.summary), *headline_rows.not_had(self.headlines)]
        )


def describe_trace(
    trace: Trace,
    *,
    telemetry: Sequence[MeasuredUse] = (),
    source_times: bool = False,
    on_done: Callable[[str], None] = lambda _: None,
) -> Description:
    """Return a trace in numbers.

    Args:
        trace: the trace.
        telemetry: what was measured beside it.
        source_times: make the cluster's row of the source's own run, queueing and GPU times, and
            its own number of GPUs, where it gives them, as AcmeTrace did; else of the times of
            submission, start and end, and of the GPUs of the whole job.
        on_done: called `STEPS` times.
    """
    numbers = overview(trace.jobs)
    on_done("overview")
    tables = {}
    for by in SHARES:
        tables[by] = shares(trace.jobs, by).to_pylist()
        on_done(by)
    summary = cluster_summary(trace, source=source_times)
    own = any(source_fact(trace.jobs, fact) != fact for fact in _SOURCE_FACTS)
    other = cluster_summary(trace, source=not source_times) if own else None
    on_done("cluster summary")
    found = headlines(trace)
    on_done("headlines")
    notes = [*trace.metadata.notes, *_contradictions(summary, other, source_times=source_times)]
    return Description(
        trace=trace,
        overview=numbers,
        shares=tables,
        summary=summary,
        source_times=source_times,
        other=other,
        headlines=found,
        telemetry=tuple(telemetry),
        notes=tuple(dict.fromkeys(notes)),
    )


def _contradictions(
    summary: ClusterSummary, other: ClusterSummary | None, *, source_times: bool
) -> list[str]:
    """Return what the source's own figures say otherwise, in a sentence."""
    if other is None:
        return []
    here = "the source's own figures" if source_times else "submission, start and end"
    there = "submission, start and end" if source_times else "the source's own figures"
    how = "without --source-times" if source_times else "with --source-times"
    changed = summary_rows.differences(summary, other)
    if not changed:
        return [f"The source's own figures give the same cluster summary as {here}."]
    shown = [
        f"{column} {summary_rows.cell_text(column, b)} instead of "
        f"{summary_rows.cell_text(column, a)}"
        for column, (a, b) in list(changed.items())[:2]
    ]
    rest = len(changed) - len(shown)
    more = f" and {plural(rest, 'other cell')}" if rest else ""
    return [
        f"The cluster summary is made of {here}; {there} give {', '.join(shown)}{more} ({how})."
    ]


def described_data(found: Description) -> dict[str, Any]:
    """Return a description as plain data.

    Keys: ``overview``, ``shares``, ``cluster_summary`` (column -> value, in the order of the
    file's columns), ``cluster_summary_n``, ``cluster_summary_left_out``, ``cluster_summary_why``
    (column -> why it is null), ``cluster_summary_times`` (``recorded``: of submission, start and
    end; ``source``: the source's own), ``cluster_summary_other`` (the row made the other way; null
    where there is no other), ``headlines`` (list), ``cannot_be_had`` (list of ``reason``,
    ``numbers``), ``telemetry`` (list), ``notes``.
    """
    return {
        "overview": found.overview,
        "shares": found.shares,
        "cluster_summary": found.summary.row,
        "cluster_summary_n": found.summary.n,
        "cluster_summary_left_out": found.summary.left_out,
        "cluster_summary_why": found.summary.why,
        "cluster_summary_times": "source" if found.source_times else "recorded",
        "cluster_summary_other": None if found.other is None else found.other.row,
        "headlines": [asdict(one) for one in found.headlines],
        "cannot_be_had": [{"reason": one.reason, "numbers": one.labels} for one in found.not_had],
        "telemetry": [one.data() for one in found.telemetry],
        "notes": found.notes,
    }


def in_a_sentence(found: Description) -> str:
    """Return the trace in a sentence, of what it tells: jobs, users, span, GPU time, medians."""
    facts = found.overview
    if not facts["num_jobs"]:
        return "There is no job in this trace."
    text = plural(facts["num_jobs"], "job")
    if facts["num_users"]:
        text += f" of {plural(facts['num_users'], 'user')}"
    if facts["span_s"]:
        text += f" in {duration(facts['span_s']).removesuffix(' 00 h')}"
    if facts["gpu_time"]:
        # A heading must not break between GPU and h.
        text += f" held {gpu_time(facts['gpu_time'])}".replace(" GPU h", "\u00a0GPU\u00a0h")
        if found.trace.cluster is not None:
            text += f" on {plural(found.trace.cluster.num_gpus, 'GPU')}"
    text += "."
    halves = [
        f"{verb} for {duration(facts[key]['p50'])} or less"
        for key, verb in (("duration", "ran"), ("wait", "waited"))
        if facts[key]["n"]
    ]
    return f"{text} Half of them {', half '.join(halves)}." if halves else text


def trace_facts(overview: Mapping[str, Any]) -> list[Fact]:
    """Return a trace in numbers from `windtunnel.characterize.overview`'s dictionary."""
    jobs = overview["num_jobs"]
    cpu = overview["num_cpu_jobs"]
    facts = [
        Fact("Jobs", count(jobs), note=f"{count(cpu)} without GPUs" if cpu else ""),
        Fact("Time span", duration(overview["span_s"]), exact_seconds(overview["span_s"])),
        _held(overview),
        _count_or_none("Users", overview["num_users"], overview["missing"]["user"]),
        _count_or_none("Virtual clusters", overview["num_vcs"], overview["missing"]["vc"]),
    ]
    for key, label in (("duration", "Run time"), ("wait", "Recorded wait")):
        spread = overview[key]
        if spread["n"] == 0:
            facts.append(Fact(label, "not recorded", note=f"n = 0 of {count(jobs)}"))
            continue
        points = ("p50", "median"), ("p90", "P90"), ("max", "longest")
        note = ", ".join(f"{word} {duration(spread[p])}" for p, word in points)
        facts.append(
            Fact(
                f"{label}, mean",
                duration(spread["avg"]),
                exact_seconds(spread["avg"]),
                f"{note}; {_n(spread)}",
            )
        )
    gpus = overview["num_gpus"]
    if gpus["n"]:
        largest = f"median {gpus['p50']:g}, P99 {gpus['p99']:g}, largest {gpus['max']:,g}"
        facts.append(Fact("GPUs a job, mean", f"{gpus['avg']:.3g}", note=f"{largest}; {_n(gpus)}"))
    return facts


def _held(overview: Mapping[str, Any]) -> Fact:
    held, n = overview["gpu_time"], overview["gpu_time_n"]
    note = f"{_n({'n': n, 'left_out': overview['num_jobs'] - n})}"
    return Fact("GPU time", gpu_time(held), f"{held:,.0f} GPU s", note)


def _n(spread: Mapping[str, Any]) -> str:
    left = spread["left_out"]
    return f"n = {count(spread['n'])}" + (f", {count(left)} unknown and left out" if left else "")


def _count_or_none(label: str, number: int, missing: int) -> Fact:
    if number == 0:
        return Fact(label, "not recorded")
    return Fact(label, count(number), note=f"unknown for {count(missing)} jobs" if missing else "")


def dropped_words(rows_read: int, dropped: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return what of the source did not become a job, and of how many records; empty for none."""
    return [
        (clean(reason, MAX_TEXT), f"{count(number)}{_share(number, rows_read)}")
        for reason, number in dropped.items()
        if number
    ]


def _share(number: int, total: int) -> str:
    return f" ({percent(number / total)} of {count(total)} records)" if total else ""
