"""The finding of a comparison in one plain sentence, gain and cost, computed from the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from windtunnel.report.curves import named
from windtunnel.report.format import count, duration, factor, is_known, percent, plural, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.sim.outcome import Outcome

#: A wait this many times as long as under the first policy is marked, where it is also
MARKED_RATIO = 2.0
#: at least this much longer, s.
MARKED_SECONDS = 60.0
#: A class must wait this much longer (times) to be named as the cost in the headline.
NAMED_RATIO = 1.2
#: Relative change of a mean that counts as one.
_CHANGE = 0.01


@dataclass(frozen=True)
class ClassTime:
    """A mean time of one size class under the first policy and under another.

    Attributes:
        size: the class's label, GPUs.
        base: the mean under the first policy, s.
        value: the mean under the other, s.
    """

    size: str
    base: float
    value: float

    @property
    def ratio(self) -> float:
        """Value / base, both taken as at least one second."""
        return max(self.value, 1.0) / max(self.base, 1.0)

    @property
    def growth(self) -> float:
        """Value / base with a minute added to both: from 1 s to 5 s is no growth to speak of."""
        return (self.value + 60) / (self.base + 60)


def much_longer(base: float | None, wait: float | None) -> bool:
    """Return whether a wait is so much longer than the first policy's that it is marked.

    >>> much_longer(60.0, 200.0), much_longer(1.0, 50.0), much_longer(None, 50.0)
    (True, False, False)
    """
    if base is None or wait is None or not (is_known(base) and is_known(wait)):
        return False
    return wait >= MARKED_RATIO * base and wait - base >= MARKED_SECONDS


def size_label(size: str) -> str:
    """Return a size class in words.

    >>> size_label("5-8"), size_label("1"), size_label("CPU")
    ('jobs of 5\u20138 GPUs', 'jobs of 1 GPU', 'CPU jobs')
    """
    if size == "CPU":
        return "CPU jobs"
    if size == "<1":
        return "jobs of less than 1 GPU"
    if size.startswith(">"):
        return f"jobs of more than {size[1:]} GPUs"
    return f"jobs of {size_text(size)} GPU{'s' * (size != '1')}"


def headline(outcomes: Mapping[str, Outcome]) -> str:
    """Return what the comparison shows, in one sentence.

    The gain is the lowest mean completion time of the policies after the first; the cost is the
    size class whose mean wait grew most, else the longest wait, else the preemptions.

    >>> headline({})
    'There is no run to compare.'
    """
    facts = [(name, outcome, outcome.metrics()) for name, outcome in named(outcomes)]
    lacking = _nothing_to_compare(facts)
    if lacking:
        return lacking
    first_name, first, base = facts[0]
    others = [fact for fact in facts[1:] if is_known(fact[2]["avg_jct"])]
    name, best, metrics = min(others, key=lambda fact: float(fact[2]["avg_jct"]))
    now, before = duration(metrics["avg_jct"]), duration(base["avg_jct"])
    change = _relative(base["avg_jct"], metrics["avg_jct"])
    cost = _cost(first, best, base, metrics)
    if change < -_CHANGE:
        return (
            f"{name} cuts the mean completion time by {percent(-change)} against {first_name} "
            f"({now} instead of {before}), {cost}."
        )
    alone = len(others) == 1
    if change <= _CHANGE:
        also = "" if alone else ", the best of the others,"
        return f"{name}{also} completes jobs as fast as {first_name} on average ({now}), {cost}."
    lead = f"{name} is no gain" if alone else "No other policy is a gain"
    which = "its" if alone else f"even under {name} the"
    return (
        f"{lead} over {first_name}: {which} mean completion time is {percent(change)} longer "
        f"({now} instead of {before})."
    )


def _nothing_to_compare(facts: Sequence[tuple[str, Outcome, dict[str, Any]]]) -> str:
    """Return the sentence for runs of which no two can be compared, or an empty text."""
    done = [name for name, _, metrics in facts if is_known(metrics["avg_jct"])]
    names = [name for name, _, _ in facts]
    sentence = ""
    if not facts:
        sentence = "There is no run to compare."
    elif not done:
        sentence = f"No job finished under {_listed(names)}."
    elif len(facts) == 1:
        sentence = _single(names[0], facts[0][2])
    elif names[0] not in done:
        sentence = f"No job finished under {names[0]}, so there is nothing to compare with."
    elif len(done) == 1:
        sentence = f"Only {names[0]} finished any job."
    elif not any(metrics["num_waited"] for _, _, metrics in facts):
        sentence = (
            "No job waits under any of the policies: the cluster has room for every job at once, "
            f"and the mean completion time is {duration(facts[0][2]['avg_jct'])}."
        )
    return sentence


def _single(name: str, metrics: Mapping[str, Any]) -> str:
    use = metrics["utilization"]
    busy = f", and {percent(use)} of the GPU time is used" if is_known(use) else ""
    return (
        f"Under {name} a job waits {duration(metrics['avg_wait'])} and completes in "
        f"{duration(metrics['avg_jct'])} on average{busy}."
    )


def worst_class(
    first: Outcome, other: Outcome, key: Literal["avg_wait", "avg_jct"] = "avg_wait"
) -> ClassTime | None:
    """Return the size class whose mean wait or completion time grew most, if any grew.

    Classes are ranked by `ClassTime.growth`.
    """
    before = {row["size"]: row[key] for row in first.by_size().to_pylist()}
    pairs = [
        ClassTime(row["size"], float(before[row["size"]]), float(row[key]))
        for row in other.by_size().to_pylist()
        if is_known(row[key]) and is_known(before.get(row["size"]))
    ]
    grown = [pair for pair in pairs if pair.value > pair.base]
    return max(grown, key=lambda pair: pair.growth, default=None)


def _cost(
    first: Outcome, other: Outcome, base: Mapping[str, Any], metrics: Mapping[str, Any]
) -> str:
    # A preempted job has long started: its cost is in its completion time, not in its wait.
    asked: tuple[tuple[Literal["avg_wait", "avg_jct"], str], ...] = (
        ("avg_wait", "wait"),
        ("avg_jct", "take"),
    )
    for key, verb in asked:
        worst = worst_class(first, other, key)
        if worst is None or worst.growth <= NAMED_RATIO:
            continue
        times = f"{duration(worst.value)} instead of {duration(worst.base)}"
        if worst.base < 1:
            return f"but {size_label(worst.size)} {verb} {times} on average"
        longer = f"{factor(worst.ratio)} times as long"
        return f"but {size_label(worst.size)} {verb} {longer} ({times} on average)"
    if _relative(base["max_wait"], metrics["max_wait"]) > _CHANGE:
        longest = f"{duration(base['max_wait'])} to {duration(metrics['max_wait'])}"
        return f"but the longest wait grows from {longest}"
    if metrics["num_preemptions"] > base["num_preemptions"]:
        return f"at the cost of {plural(metrics['num_preemptions'], 'preemption')}"
    return "and jobs of no size wait noticeably longer"


def _relative(base: float | None, value: float | None) -> float:
    if base is None or value is None or not (is_known(base) and is_known(value)):
        return 0.0
    if base == 0:
        return 0.0 if value == 0 else float("inf")
    return (value - base) / base


def cautions(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Return what makes the runs hard to compare, one sentence each; empty if nothing does."""
    runs = named(outcomes)
    lines = []
    jobs = {outcome.jobs.num_rows for _, outcome in runs}
    if len(jobs) > 1:
        lines.append("The runs flew job tables of different sizes.")
    clusters = [outcome.cluster for _, outcome in runs]
    if any(cluster != clusters[0] for cluster in clusters):
        lines.append("The runs flew on different clusters.")
    lines += _twins(runs)
    finished = [(name, outcome.metrics()) for name, outcome in runs]
    if len({m["num_finished"] for _, m in finished}) > 1:
        each = _listed([f"{name} {count(m['num_finished'])}" for name, m in finished])
        lines.append(
            f"The runs finished different numbers of jobs ({each}); completion times are over "
            "finished jobs only, so compare them with care."
        )
    for name, metrics in finished:
        if metrics["num_rejected"]:
            rejected = plural(metrics["num_rejected"], "job")
            lines.append(f"{name} rejected {rejected}, which are in no average.")
    return lines


def _twins(runs: Sequence[tuple[str, Outcome]]) -> list[str]:
    """Return a sentence for every group of runs that are the same schedule."""
    groups: list[list[tuple[str, Outcome]]] = []
    for name, outcome in runs:
        group = next((g for g in groups if _same_flight(g[0][1], outcome)), None)
        if group is None:
            groups.append([(name, outcome)])
        else:
            group.append((name, outcome))
    return [
        f"{_listed([name for name, _ in group[1:]])} ran every job at the same times as "
        f"{group[0][0]}; the curves lie on top of each other."
        for group in groups
        if len(group) > 1
    ]


def _same_flight(one: Outcome, other: Outcome) -> bool:
    if not len(one.flight.start):
        return False
    a, b = one.flight, other.flight
    pairs = ((a.start, b.start), (a.end, b.end), (a.run_time, b.run_time))
    return all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
