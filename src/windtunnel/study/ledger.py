"""What each of Slurm's mechanisms explains: a log flown again with one after another added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from windtunnel.policies.slurm.policy import Slurm
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import with_numbers
from windtunnel.sim.slurm.names import partitions_of
from windtunnel.site.host_list import readable_hosts
from windtunnel.site.slurm import SlurmPartition, SlurmSite
from windtunnel.study.agreement import Agreement, agreement
from windtunnel.study.simulate import fly
from windtunnel.study.verdict import Verdict
from windtunnel.study.wait_causes import CAUSES, cause_of

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.recording import Recording

#: So many jobs of a longer log are flown for each mechanism, the first ones.
MOST_JOBS = 15_000
#: The mechanisms, in the order in which they are added.
MECHANISMS: tuple[str, ...] = (
    *("nodes", "partitions", "eligibility", "arrays", "limits", "reservations", "priorities"),
)


@dataclass(frozen=True)
class Entry:
    """A replay with the mechanisms up to one.

    Attributes:
        mechanism: the last one added, of `MECHANISMS`.
        verdict: on the replay with it and all before it.
        decisions: from recorded states; None = the log does not say on which nodes jobs ran.
    """

    mechanism: str
    verdict: Verdict
    decisions: Agreement | None

    def data(self) -> dict[str, Any]:
        """Return it as plain data: ``mechanism``, the numbers of its verdict, ``decisions``."""
        decisions = None if self.decisions is None else self.decisions.data()
        return {"mechanism": self.mechanism, **self.verdict.data(), "decisions": decisions}


def ledger(recording: Recording, conditions: Conditions) -> list[Entry]:
    """Fly a record with one mechanism of its Slurm after another.

    Mechanisms that the site does not have are left out. Of a long log the first `MOST_JOBS` jobs
    are flown.

    Args:
        recording: the jobs.
        conditions: resolved; policy ``slurm`` with a site.
    """
    policy = conditions.scheduler.policy
    site = policy.site if isinstance(policy, Slurm) else None
    if site is None or not recording.has_starts:
        return []
    recording = replace(
        recording,
        jobs=recording.jobs.slice(0, MOST_JOBS),
        submitted=recording.submitted[:MOST_JOBS],
    )
    recorded = numbers(recording.jobs, "start_time") - recording.submitted
    found: list[Entry] = []
    for place, name in enumerate(MECHANISMS):
        if not _has(name, site, recording):
            continue
        known = MECHANISMS[: place + 1]
        jobs = _jobs(recording, known)
        run = conditions.having(policy=Slurm(_site(site, known)))
        verdict = Verdict.of(replace(recording, jobs=jobs).waits(fly(jobs, run)), recorded)
        found.append(Entry(name, verdict, agreement(jobs, run)))
    return found


#: A cause of the log's own has a mechanism of ours.
CAUSED_BY = {"quota": "limits", "throttle": "arrays", "reservation": "reservations"}
#: A mechanism is missing where the log has so much more of all waiting for it than the replay.
MISSING = 0.01
#: Priorities by submission fall; of others more than this part of the steps rise.
RISING = 0.05


@dataclass(frozen=True)
class Missing:
    """A mechanism that the record shows and the site lacks.

    Attributes:
        mechanism: of `MECHANISMS`.
        evidence: what the record shows: Slurm's words for waits, or names of nodes or partitions.
        recorded, replayed: its share of all waiting in the log, and in the replay.
    """

    mechanism: str
    evidence: tuple[str, ...]
    recorded: float
    replayed: float


def missing(
    recording: Recording,
    conditions: Conditions,
    outcome: Outcome,
    decisions: Agreement | None = None,
) -> list[Missing]:
    """Return the mechanisms that the record shows and a replay does not.

    Nodes and partitions that jobs ran on and the site does not name, with the waits of these jobs.
    Where it names all: waits for a limit, a throttle or a reservation (the log's ``reason``) of
    which the log has at least `MISSING` of all waiting and the replay less than half as much;
    priorities that do not fall in the order of submission, where the site has them so, with the
    waits for priority.

    Args:
        recording: the jobs.
        conditions: of the replay, resolved; policy ``slurm`` with a site.
        outcome: the replay, with ``wait_reasons``.
        decisions: with all that the site has; nodes that nobody used though the scheduler would
            have are down or reserved. None = not compared.
    """
    site = conditions.scheduler.policy.site
    start = numbers(recording.jobs, "start_time")
    wait = np.nan_to_num(start - recording.submitted)
    compared = float(wait[:MOST_JOBS].sum())
    wait /= wait.sum() or 1.0
    flown = np.nan_to_num(recording.waits(outcome))
    flown /= flown.sum() or 1.0
    logged = _column(recording, "reason")
    reasons = [outcome.wait_reasons.get(row) for row in range(len(start))]
    found = _unknown_names(recording, site, wait)
    if found:
        return found  # what waits are for is another thing without them
    found = _unwaited(logged, wait, reasons, flown)
    priority = _share(wait, [word == "Priority" for word in logged])
    if _is_ranked(recording, site) and priority >= MISSING:
        found.append(Missing("priorities", ("Priority",), priority, 0.0))
    shut = {} if decisions is None else decisions.shut
    beside = sum(shut.values()) / (compared or 1.0)
    if beside >= MISSING and not any(one.mechanism == "reservations" for one in found):
        names = sorted(shut, key=lambda name: -shut[name])
        found.append(Missing("reservations", tuple(names), beside, 0.0))
    return sorted(found, key=lambda one: MECHANISMS.index(one.mechanism))


def _column(recording: Recording, name: str) -> list[str | None]:
    jobs = recording.jobs
    has = name in jobs.column_names
    return jobs[name].to_pylist() if has else [None] * jobs.num_rows


def _share(wait: np.ndarray, chosen: list[bool]) -> float:
    return float(wait[np.array(chosen, dtype=bool)].sum())


def _unknown_names(recording: Recording, site: SlurmSite, wait: np.ndarray) -> list[Missing]:
    """Return nodes and partitions that jobs ran on and a site does not have."""
    found = []
    for name, column, known in (
        ("nodes", "nodelist", {node.name for node in site.nodes}),
        ("partitions", "partition", {part.name for part in site.partitions}),
    ):
        words = _column(recording, column)
        lacking = {word: _names(word, column) - known for word in {*words} if word}
        rows = [bool(word and lacking[word]) for word in words]
        if any(rows):
            evidence = tuple(sorted(set().union(*lacking.values())))
            found.append(Missing(name, evidence, _share(wait, rows), 0.0))
    return found


def _names(word: str, column: str) -> set[str]:
    return set(partitions_of(word) if column == "partition" else readable_hosts(word))


def _unwaited(
    logged: list[str | None], wait: np.ndarray, replayed: list[str | None], flown: np.ndarray
) -> list[Missing]:
    """Return what the log has waits for, and the replay has not, by Slurm's own words."""
    here, there = (_by_reason(*pair) for pair in ((replayed, flown), (logged, wait)))
    lacks: dict[str, list[str]] = {}
    for word, share in there.items():
        cause = cause_of(word)
        name = None if cause is None else CAUSED_BY.get(CAUSES[cause])
        if name is not None and share >= max(MISSING, 2 * here.get(word, 0.0)):
            lacks.setdefault(name, []).append(word)
    found = []
    for name, words in lacks.items():
        recorded, mine = (sum(has.get(word, 0.0) for word in words) for has in (there, here))
        found.append(Missing(name, tuple(sorted(words)), recorded, mine))
    return found


def _by_reason(words: list[str | None], wait: np.ndarray) -> dict[str, float]:
    found: dict[str, float] = {}
    for word, seconds in zip(words, wait.tolist(), strict=True):
        if word and seconds:
            found[word] = found.get(word, 0.0) + seconds
    return found


def _is_ranked(recording: Recording, site: SlurmSite) -> bool:
    """Return whether a log's priorities rise where those by submission, as the site's, fall."""
    if site.settings.priority.multifactor or "priority" not in recording.jobs.column_names:
        return False
    value, eligible = (numbers(recording.jobs, name) for name in ("priority", "submit_time"))
    rising = []
    for since in (recording.submitted, eligible):
        known = value[np.argsort(since, kind="stable")]
        steps = np.diff(known[~np.isnan(known)])
        rising.append(float((steps > 0).mean()) if len(steps) else 0.0)
    return min(rising) > RISING


def _has(name: str, site: SlurmSite, recording: Recording) -> bool:
    jobs = recording.jobs
    return {
        "nodes": True,
        "partitions": len(site.partitions) > 1,
        "eligibility": not np.array_equal(jobs["submit_time"].to_numpy(), recording.submitted),
        "arrays": "array_limit" in jobs.column_names,
        "limits": bool({"limits", "safe"} & site.settings.enforce),
        "reservations": bool(site.reservations),
        "priorities": site.settings.priority.multifactor,
    }[name]


def _site(site: SlurmSite, known: tuple[str, ...]) -> SlurmSite:
    """Return a site with the mechanisms that are known."""
    settings, having = site.settings, msgspec.structs.replace
    if "limits" not in known:
        settings = having(settings, enforce=frozenset())
    if "priorities" not in known:
        settings = having(settings, priority=having(settings.priority, multifactor=False))
    site = having(site, settings=settings)
    if "reservations" not in known:
        site = having(site, reservations=())
    if "partitions" in known:
        return site
    names = tuple(node.name for node in site.nodes)
    # Jobs name partitions that are not there then, and get the default one.
    return having(site, partitions=(SlurmPartition("(all)", names, is_default=True),))


def _jobs(recording: Recording, known: tuple[str, ...]) -> pa.Table:
    jobs = recording.jobs
    if "eligibility" not in known:
        jobs = with_numbers(jobs, "submit_time", recording.submitted)
    if "arrays" not in known and "array_limit" in jobs.column_names:
        jobs = jobs.drop_columns(["array_limit"])
    return jobs
