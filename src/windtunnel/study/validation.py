"""How much to believe a what-if: a trace replayed under its policy, beside what was recorded.

Every job whose submission, run time and GPUs are known and that is recorded to have started is
flown on the trace's cluster, its run time as recorded. What differs from the record is what the
simulator does not know: the real policy's details, limits, broken nodes, jobs that left the queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.quantiles import quantiles
from windtunnel.sim.metrics import size_classes
from windtunnel.sim.timeline import resample
from windtunnel.study.compare import fly_several
from windtunnel.study.recording import Recording
from windtunnel.study.resolving import cluster_of, conditions_of, resolved
from windtunnel.study.verdict import Verdict
from windtunnel.study.wait_causes import hours_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions

#: Waits that differ by at most this are the same, s: logs count whole seconds.
SAME_S = 1.0
#: Bins of the curves over time: an hour, or as many as this.
MAX_BINS = 5000
_HOUR = 3600.0


@dataclass(frozen=True)
class Validation:
    """A trace's record beside its replays.

    Attributes:
        recorded: what was recorded, of the jobs that were flown.
        outcomes: policy -> replay, in the order asked for.
        left_out: reason -> jobs that were not flown.
        has_starts: whether the trace records when jobs started; without, nothing can be compared.
        epoch: UTC instant of time 0, ISO 8601; None = not known.
        zone: IANA zone of the hours; None = UTC.
        recording: the jobs; waits count from their submission, also where a job was eligible only
            later.
    """

    recorded: Outcome
    outcomes: dict[str, Outcome]
    left_out: dict[str, int]
    has_starts: bool
    epoch: str | None
    zone: str | None
    recording: Recording

    def verdict(self, policy: str) -> Verdict | None:
        """Judge a replay; None where no starts are recorded."""
        return Verdict.of(*self._waits(self.outcomes[policy])) if self.has_starts else None

    def runs(self) -> list[dict[str, Any]]:
        """Return every replay beside the record, the nearest first (least mean error of waits).

        Keys: ``policy``, ``queueing``, ``n`` (jobs that started in both), ``same_share`` (of
        them, those whose waits differ by at most a second), ``avg_error`` and ``p50_error`` (of
        |simulated - recorded wait|, s), ``bias`` (mean simulated - recorded), ``avg_wait``,
        ``p50_wait``, ``p90_wait``, each also with ``recorded_`` before it, ``utilization``,
        ``recorded_utilization``, ``utilization_error`` and ``queue_error`` (means over hours of
        the absolute difference: share of GPUs, and jobs waiting). Null where nothing is recorded.
        """
        rows = [self._run(name, outcome) for name, outcome in self.outcomes.items()]
        if not self.has_starts:
            return rows
        # Sorted is stable; a replay in which no recorded job starts comes last.
        return sorted(rows, key=lambda row: (row["n"] == 0, row["avg_error"] or 0.0))

    @cached_property
    def most_recorded(self) -> float:
        """Most GPUs that the record holds at once."""
        used = self.recorded.utilization()["gpus"].to_numpy()
        return float(used.max(initial=0.0))

    def is_exact(self, policy: str) -> bool:
        """Return whether a replay has every recorded wait to the last digit."""
        mine, theirs = self._waits(self.outcomes[policy])
        if not self.has_starts or np.isnan(theirs).all():
            return False
        return bool(np.array_equal(mine, theirs, equal_nan=True))

    def by_size(self, policy: str) -> list[dict[str, Any]]:
        """Return waits by size of the job, simulated and recorded; see `_grouped`."""
        codes, labels = size_classes(self.recorded.num_gpus)
        return self._grouped(policy, codes, labels, "size")

    def by_hour(self, policy: str) -> list[dict[str, Any]]:
        """Return waits by hour of submission, simulated and recorded; see `_grouped`."""
        hours = hours_of(self.recorded.submit_time, self.epoch, self.zone)
        return self._grouped(policy, hours, [str(hour) for hour in range(24)], "hour")

    def over_time(self, policy: str) -> dict[str, np.ndarray]:
        """Return curves in bins of an hour (wider in a long trace).

        Keys: ``time`` (s, left edges), ``utilization``, ``recorded_utilization`` (0..1),
        ``queue``, ``recorded_queue`` (jobs waiting), all of shape (bins,).
        """
        start, stop, bins = self._bins
        found = {}
        for prefix, outcome in (("", self.outcomes[policy]), ("recorded_", self.recorded)):
            used, line = outcome.utilization(), outcome.queue()
            for name, table, column in (
                ("utilization", used, "utilization"),
                ("queue", line, "jobs"),
            ):
                time, values = table["time"].to_numpy(), table[column].to_numpy()
                left, means = resample(time, values, start=start, stop=stop, bins=bins)
                found["time"], found[prefix + name] = left, means
        return found

    @cached_property
    def _bins(self) -> tuple[float, float, int]:
        runs = [self.recorded] if self.has_starts else list(self.outcomes.values())
        ends = np.concatenate([run.flight.segment_end for run in runs])
        submit = self.recorded.submit_time
        start = float(submit.min()) if len(submit) else 0.0
        known = ends[~np.isnan(ends)]
        stop = float(known.max()) if len(known) else start
        return start, stop, int(min(MAX_BINS, max(1, (stop - start) // _HOUR)))

    def _waits(self, outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
        """Return simulated and recorded waits, s, shape (n,)."""
        recorded = self.recorded.flight.start - self.recording.submitted
        return self.recording.waits(outcome), recorded

    def _run(self, name: str, outcome: Outcome) -> dict[str, Any]:
        mine, theirs = self._waits(outcome)
        both = ~np.isnan(mine) & ~np.isnan(theirs)
        error = np.abs(mine - theirs)[both]
        row: dict[str, Any] = {
            "policy": name,
            "queueing": outcome.settings["queueing"],
            "n": int(both.sum()),
            **_spread(mine[both if self.has_starts else ~np.isnan(mine)], ""),
            **_spread(theirs[both], "recorded_"),
            "utilization": outcome.metrics()["utilization"],
            "recorded_utilization": self.recorded.metrics()["utilization"],
        }
        known = self.has_starts and len(error) > 0
        row |= {
            "same_share": float((error <= SAME_S).mean()) if known else None,
            "avg_error": float(error.mean()) if known else None,
            "p50_error": float(quantiles(error, 0.5)) if known else None,
            "bias": float((mine - theirs)[both].mean()) if known else None,
        }
        curves = self.over_time(name) if known else {}
        for key in ("utilization", "queue"):
            apart = np.abs(curves[key] - curves[f"recorded_{key}"]) if known else np.empty(0)
            row[f"{key}_error"] = float(apart.mean()) if len(apart) else None
        if not self.has_starts:
            row["recorded_utilization"] = None
        return row

    def _grouped(
        self, policy: str, codes: np.ndarray, labels: list[str], name: str
    ) -> list[dict[str, Any]]:
        """Return a row a group that has jobs.

        Keys: ``name``, ``n``, ``avg_wait``, ``p50_wait``, ``p90_wait``, each also with
        ``recorded_`` before it, ``avg_error`` (s) and ``same_share``.
        """
        mine, theirs = self._waits(self.outcomes[policy])
        both = ~np.isnan(mine) & ~np.isnan(theirs)
        found = []
        for code in np.unique(codes[both]):
            mask = both & (codes == code)
            error = np.abs(mine - theirs)[mask]
            found.append(
                {
                    name: labels[code],
                    "n": int(mask.sum()),
                    **_spread(mine[mask], ""),
                    **_spread(theirs[mask], "recorded_"),
                    "avg_error": float(error.mean()),
                    "same_share": float((error <= SAME_S).mean()),
                }
            )
        return found


def _spread(wait: np.ndarray, prefix: str) -> dict[str, float | None]:
    if not len(wait):
        return {f"{prefix}{key}_wait": None for key in ("avg", "p50", "p90")}
    p50, p90 = quantiles(wait, [0.5, 0.9]).tolist()
    return {
        f"{prefix}avg_wait": float(wait.mean()),
        f"{prefix}p50_wait": p50,
        f"{prefix}p90_wait": p90,
    }


def validate(
    jobs: pa.Table,
    cluster: ClusterSpec | str,
    policies: Sequence[str],
    **options: Any,
) -> Validation:
    """Replay a trace and set it beside its record.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        cluster: where it ran.
        policies: names; the family that the cluster is known or thought to have used.
        options: further arguments of `windtunnel.simulate`.

    Raises:
        SpecError, SchemaError, PolicyError: as `windtunnel.simulate`.
    """
    chosen = {"oversize": "reject", "incomplete": "reject", **options}
    runs = [resolved(conditions_of(cluster, name, **chosen), several=True) for name in policies]
    return replay(Recording.of(jobs), runs)


def replay(
    recording: Recording,
    runs: Sequence[Conditions],
    *,
    epoch: str | None = None,
    zone: str | None = None,
    on_done: Callable[[str], None] | None = None,
) -> Validation:
    """Fly recorded jobs again, and set the flights beside the record.

    Args:
        recording: the jobs.
        runs: what they are flown under, resolved.
        epoch: UTC instant of time 0, for hours of the day.
        zone: IANA zone of these hours.
        on_done: called with a policy's name after its replay.

    Raises:
        SpecError, SchemaError, PolicyError: as `windtunnel.simulate`.
    """
    outcomes = fly_several(recording.jobs, runs, on_done).outcomes
    return Validation(
        recording.outcome(cluster_of(runs[0])),
        outcomes,
        recording.left_out,
        recording.has_starts,
        epoch,
        zone,
        recording,
    )
