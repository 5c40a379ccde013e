"""Goodput as a log recorded it: attempts of jobs, what ended them, and what that cost.

An attempt is one record of a log; records ``ID``, ``ID#2``, ``ID#3`` ... are attempts of one job
that was put into the queue again. `INTERRUPTED` names how the cluster ends an attempt; what users'
own errors cost is `windtunnel.characterize.waste`. A log does not say what checkpoints saved: an
interrupted attempt lost all its work, or what it did after the last whole interval, where one is
given. The words are those of `windtunnel.sim.observe.goodput`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.lemons import Attempts, NodesFound, find_lemons
from windtunnel.characterize.recorded import Recorded
from windtunnel.poisson import interval
from windtunnel.sim.metrics import size_classes
from windtunnel.site.host_list import readable_hosts

if TYPE_CHECKING:
    import pyarrow as pa

#: Statuses with which the cluster ends an attempt.
INTERRUPTED: tuple[str, ...] = ("node_fail", "preempted")
#: The one of them that is a failure.
FAILURE = "node_fail"
#: Parts of the GPU time held, in order.
PARTS: tuple[str, ...] = ("productive", "initialization", "restart", "lost_work")
_AGAIN = re.compile(r"#\d+$")
_Z = 1.959963984540054


@dataclass(frozen=True)
class RecordedGoodput:
    """What a log says of its goodput; row order = the jobs table's.

    Attributes:
        recorded: the history.
        parts: part -> GPU-s of each attempt, shape (n,); they add up to what it held.
        waited: Float array (n,), GPU-s that the job waited for after this attempt until it went on.
        job: Int array (n,), number of the job.
        status: object array (n,), how it ended.
        nodes: what is known of nodes; None = the log names none.
        unread: attempts whose list of nodes cannot be read.
    """

    recorded: Recorded
    parts: dict[str, np.ndarray]
    waited: np.ndarray
    job: np.ndarray
    status: np.ndarray
    nodes: NodesFound | None
    unread: int

    @cached_property
    def ran(self) -> np.ndarray:
        """Bool array (n,): attempts that held GPUs for a known time."""
        ran: np.ndarray = self.recorded.gpu_time > 0
        return ran

    def summary(self, of: np.ndarray | None = None) -> dict[str, Any]:
        """Return the numbers of some attempts (Bool array (n,)), or of all.

        Keys: ``num_attempts``, ``num_jobs``, ``num_failures``, ``gpu_time`` (GPU-s), ``goodput``
        and ``badput_`` of each other part and of ``waiting_for_replacement`` (shares of it),
        ``ettr``, ``mttf`` (s), each of the two with ``_low`` and ``_high`` (95 %).
        """
        of = self.ran if of is None else of & self.ran
        sums = {name: float(values[of].sum()) for name, values in self.parts.items()}
        held = sum(sums.values())
        sums["waiting_for_replacement"] = float(self.waited[of].sum())
        shares = {name: value / held if held else None for name, value in sums.items()}
        goodput = shares.pop("productive")
        failures = int((self.status[of] == FAILURE).sum())
        ran = float(self.recorded.run[of].sum())
        low, high = interval(failures)
        return {
            "num_attempts": int(of.sum()),
            "num_jobs": len(np.unique(self.job[of])),
            "num_failures": failures,
            "gpu_time": held,
            "goodput": goodput,
            **{f"badput_{name}": value for name, value in shares.items()},
            **self._ettr(of),
            "mttf": ran / failures if failures else None,
            "mttf_low": ran / high if ran else None,
            "mttf_high": ran / low if low else None,
        }

    def _ettr(self, of: np.ndarray) -> dict[str, float | None]:
        """Return productive time over time from first submission to last end, by jobs' GPUs."""
        found = self.recorded
        known = of & ~np.isnan(found.end) & ~np.isnan(found.submit)
        none = dict.fromkeys(("ettr", "ettr_low", "ettr_high"))
        if not known.any():
            return none
        _, job = np.unique(self.job[known], return_inverse=True)
        count = int(job.max()) + 1
        first, last, gpus = np.full(count, np.inf), np.full(count, -np.inf), np.zeros(count)
        np.minimum.at(first, job, found.submit[known])
        np.maximum.at(last, job, found.end[known])
        np.maximum.at(gpus, job, found.gpus[known])
        whole = gpus * (last - first)
        good = np.bincount(job, self.parts["productive"][known], count)
        total = float(whole.sum())
        if total <= 0:
            return none
        ratio = float(good.sum()) / total
        if count == 1:
            return none | {"ettr": ratio}
        square = float(((good - ratio * whole) ** 2).sum())
        error = _Z * math.sqrt(count / (count - 1) * square) / total
        return {
            "ettr": ratio,
            "ettr_low": max(0.0, ratio - error),
            "ettr_high": min(1.0, ratio + error),
        }

    def by_size(self) -> list[dict[str, Any]]:
        """Return `summary` of each size class that has attempts, with ``size``, smallest first."""
        classes, labels = size_classes(self.recorded.gpus)
        rows = []
        for code, label in enumerate(labels):
            of = (classes == code) & self.ran
            if of.any():
                rows.append({"size": label, **self.summary(of)})
        return rows

    def by_cause(self) -> list[dict[str, Any]]:
        """Return what interruptions cost by cause, most first.

        Keys: ``cause`` (node_fail, outage, preempted), ``num_attempts``, ``lost_work`` and
        ``waiting_for_replacement`` (GPU-s).
        """
        outage = np.zeros(len(self.job), dtype=bool)
        if self.nodes is not None:
            outage = self.nodes.outage
        failed = self.status == FAILURE
        kinds = {"node_fail": failed & ~outage, "outage": failed & outage,
                 "preempted": self.status == "preempted"}  # fmt: skip
        rows = [
            {
                "cause": cause,
                "num_attempts": int((of & self.ran).sum()),
                "lost_work": float(self.parts["lost_work"][of].sum()),
                "waiting_for_replacement": float(self.waited[of].sum()),
            }
            for cause, of in kinds.items()
            if (of & self.ran).any()
        ]
        return sorted(rows, key=lambda row: -row["lost_work"] - row["waiting_for_replacement"])


def recorded_goodput(
    jobs: pa.Table, *, checkpoint: float | None = None, startup: float = 0.0, restart: float = 0.0
) -> RecordedGoodput:
    """Return what a log says of its goodput.

    Args:
        jobs: a jobs table (`windtunnel.schema`); with a column ``nodelist`` (Slurm's lists of
            hosts) also of its nodes.
        checkpoint: seconds of work between checkpoints; None = none, all work is lost.
        startup: seconds that a job's first attempt takes before it works.
        restart: seconds that each later one does.
    """
    found = Recorded.of(jobs)
    status = np.array(jobs["status"].fill_null("unknown").to_pylist(), dtype=object)
    names = jobs["job_id"].to_pylist()
    known = set(names)
    bases = [_base(name, known) for name in names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(bases))}
    job = np.array([numbers[name] for name in bases], dtype=np.int64)
    begin = np.where(np.isnan(found.start), np.inf, found.start)
    order = np.lexsort((begin, job))
    later = np.zeros(len(job), dtype=bool)
    later[order[1:]] = job[order[1:]] == job[order[:-1]]
    follows = np.full(len(job), np.nan)
    same = job[order[1:]] == job[order[:-1]]
    follows[order[:-1][same]] = found.start[order[1:]][same]
    interrupted = np.isin(status, INTERRUPTED)
    setup = np.minimum(found.run, np.where(later, restart, startup))
    work = found.run - setup
    lost = work if checkpoint is None else np.fmod(work, checkpoint)
    lost = np.where(interrupted, lost, 0.0)
    seconds = (work - lost, np.where(later, 0.0, setup), np.where(later, setup, 0.0), lost)
    parts = {name: found.gpus * value for name, value in zip(PARTS, seconds, strict=True)}
    waited = np.where(interrupted, np.nan_to_num(np.maximum(0.0, follows - found.end)), 0.0)
    nodes, unread = _nodes(jobs, found, status)
    return RecordedGoodput(found, parts, found.gpus * waited, job, status, nodes, unread)


def _base(name: str, known: set[str]) -> str:
    base = _AGAIN.sub("", name)
    return base if base in known else name


def _nodes(jobs: pa.Table, found: Recorded, status: np.ndarray) -> tuple[NodesFound | None, int]:
    """Return what the attempts say of nodes, and how many lists of nodes cannot be read."""
    if "nodelist" not in jobs.column_names:
        return None, 0
    numbers: dict[str, int] = {}
    read: dict[str, list[int]] = {}
    node: list[int] = []
    attempt: list[int] = []
    unread = 0
    for row, text in enumerate(jobs["nodelist"].to_pylist()):
        if not text or found.run[row] <= 0 or np.isnan(found.end[row]):
            continue
        if text not in read:
            names = readable_hosts(text)
            read[text] = [numbers.setdefault(name, len(numbers)) for name in names]
        unread += not read[text]
        node += read[text]
        attempt += [row] * len(read[text])
    if not node:
        return None, unread
    pairs = np.array(node, dtype=np.int64), np.array(attempt, dtype=np.int64)
    end = np.nan_to_num(found.end)
    failed = (status == FAILURE) & np.isin(np.arange(len(end)), pairs[1])
    return find_lemons(Attempts(*pairs, found.run, end, failed, list(numbers))), unread
