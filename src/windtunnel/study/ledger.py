"""What each of Slurm's mechanisms explains: a log flown again with one after another added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from windtunnel.policies.slurm.policy import Slurm
from windtunnel.site.slurm import SlurmPartition, SlurmSite
from windtunnel.study.simulate import fly
from windtunnel.study.verdict import Verdict
from windtunnel.study.wait_causes import CAUSES, cause_of

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """

    mechanism: str
    verdict: Verdict

    def data(self) -> dict[str, Any]:
        """Return it as plain data: ``mechanism``, and the numbers of its verdict."""
        return {"mechanism": self.mechanism, **self.verdict.data()}


def ledger(
    recording: Recording, conditions: Conditions, on_done: Callable[[str], None] = lambda _: None
) -> list[Entry]:
    """Fly a record with one mechanism of its Slurm after another.

    Mechanisms that the site does not have are left out. Of a long log the first `MOST_JOBS` jobs
    are flown.

    Args:
        recording: the jobs.
        conditions: resolved; policy ``slurm`` with a site.
        on_done: called with each mechanism that was added.
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
    start = recording.jobs["start_time"].to_numpy()
    recorded = np.asarray(start, dtype=np.float64) - recording.submitted
    found: list[Entry] = []
    for place, name in enumerate(MECHANISMS):
        if not _has(name, site, recording):
            continue
        known = MECHANISMS[: place + 1]
        jobs = _jobs(recording, known)
        out = fly(jobs, conditions.having(policy=Slurm(_site(site, known))))
        found.append(Entry(name, Verdict.of(out.flight.start - recording.submitted, recorded)))
        on_done(name)
    return found


#: A cause of the log's own has a mechanism of ours.
CAUSED_BY = {"quota": "limits", "throttle": "arrays", "reservation": "reservations"}
#: A mechanism is missing where the log has so much more of all waiting for it than the replay.
MISSING = 0.01


def missing(recording: Recording, outcome: Outcome) -> dict[str, tuple[float, float]]:
    """Return the mechanisms that the log waited for and a replay does not.

    Args:
        recording: the jobs, with their own ``reason``.
        outcome: the replay, with ``wait_reasons``.

    Returns:
        Mechanism -> its share of all waiting in the log, and in the replay; those of which the
        log has at least `MISSING` and the replay less than half as much.
    """
    if "reason" not in recording.jobs.column_names:
        return {}
    start = np.asarray(recording.jobs["start_time"].to_numpy(), dtype=np.float64)
    reasons = [outcome.wait_reasons.get(row) for row in range(len(start))]
    shares = [
        _shares(words, np.nan_to_num(begin - recording.submitted))
        for words, begin in (
            (recording.jobs["reason"].to_pylist(), start),
            (reasons, outcome.flight.start),
        )
    ]
    return {
        name: (shares[0][cause], shares[1][cause])
        for cause, name in CAUSED_BY.items()
        if shares[0][cause] >= max(MISSING, 2 * shares[1][cause])
    }


def _shares(words: list[str | None], wait: np.ndarray) -> dict[str, float]:
    """Return the share of all waiting by the causes that have mechanisms."""
    found = dict.fromkeys(CAUSED_BY, 0.0)
    total = float(wait.sum()) or 1.0
    for word, seconds in zip(words, wait.tolist(), strict=True):
        cause = cause_of(word)
        if cause is not None and CAUSES[cause] in found:
            found[CAUSES[cause]] += seconds / total
    return found


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
        at = jobs.schema.get_field_index("submit_time")
        submitted = pa.array(recording.submitted, pa.float64())
        jobs = jobs.set_column(at, jobs.schema.field(at), submitted)
    if "arrays" not in known and "array_limit" in jobs.column_names:
        jobs = jobs.drop_columns(["array_limit"])
    return jobs
