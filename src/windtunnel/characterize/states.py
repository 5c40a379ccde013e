"""How do jobs end? Shares of jobs and of GPU time by final state.

AcmeTrace's convention (InternLM/AcmeTrace README and figure 3): a job that timed out or whose node
failed has failed, nothing else has. ``out_of_memory`` is a word of newer Slurm that the published
shares know nothing of: it stands for itself, like preempted, running, pending and unknown, so that
a failure rate means the same on every trace. `windtunnel.characterize.failures` counts it as a
failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.groups import NONE, grouped_table
from windtunnel.characterize.population import population
from windtunnel.characterize.relation import rows
from windtunnel.schema import STATUSES

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.companions import Relation

#: Statuses that count as failed in the published shares.
FAILED: tuple[str, ...] = ("failed", "timeout", "node_fail")
#: States in the order of the rows; the first three are there even without a job.
STATES: tuple[str, ...] = (
    *("completed", "cancelled", "failed"),
    *(s for s in STATUSES if s not in ("completed", "cancelled", *FAILED)),
    NONE,
)
_ALWAYS = STATES[:3]


def state_shares(
    jobs: Relation, by: str | None = None, *, where: str = "gpu", gpu_time: str = "gpu_time"
) -> pa.Table:
    """Return the share of jobs and of GPU time that ended in each state, in each group of jobs.

    Args:
        gpu_time: the fact to add up: ``gpu_time``, or ``source_gpu_time`` as AcmeTrace does.

    Returns:
        One row a group and state: the column named as ``by`` (absent without), then, in the order
        of `STATES` (completed, cancelled and failed always, the
        others where there are such jobs; ``"(none)"`` = no status): ``state``, ``num_jobs``,
        ``job_share`` (0..1 of n), ``gpu_time`` (GPU-seconds), ``gpu_time_share`` (0..1; null where
        there is no GPU time at all), ``n`` (jobs of the group), ``left_out`` (jobs of the state
        that are in no GPU time: duration unknown), ``unsized`` (jobs of unknown GPU count).

    Raises:
        SpecError: ``where`` or ``gpu_time`` is unknown.
    """
    import pyarrow as pa

    table = population(jobs, (gpu_time,), where=where, by=by, columns=("status",))
    keyed = table.mutate(state=state_of(table.status))
    sums = keyed.group_by(["place", "label", "state"]).aggregate(
        num_jobs=keyed.asked.sum(),
        gpu_time=keyed.fact_0.sum().fill_null(0.0),
        left_out=(keyed.asked & keyed.fact_0.isnull()).sum(),
        unsized=(~keyed.asked).sum(),
    )
    groups: dict[tuple[float, str], dict[str, dict[str, Any]]] = {}
    for row in rows(sums):
        groups.setdefault((row["place"], row["label"]), {})[row["state"]] = row
    if by is None and not groups:
        groups[0.0, ""] = {}
    found = [row for key, states in groups.items() for row in _group(key, states)]
    columns = {
        "state": pa.string(),
        "num_jobs": pa.int64(),
        "job_share": pa.float64(),
        "gpu_time": pa.float64(),
        "gpu_time_share": pa.float64(),
        **dict.fromkeys(("n", "left_out", "unsized"), pa.int64()),
    }
    return grouped_table(found, by, columns)


def state_of(status: Any) -> Any:
    """Return the state that a status (Ibis text) counts as: one of `STATES`."""
    return status.isin(FAILED).ifelse("failed", status.fill_null(NONE)).fill_null(NONE)


def _group(key: tuple[float, str], states: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of one group, in the order of `STATES`, then other words by name."""
    n = sum(row["num_jobs"] for row in states.values())
    total = sum(row["gpu_time"] for row in states.values())
    unsized = sum(row["unsized"] for row in states.values())
    others = sorted(set(states) - set(STATES))
    found = []
    for state in (*STATES, *others):
        row = states.get(state, {"num_jobs": 0, "gpu_time": 0.0, "left_out": 0})
        if not row["num_jobs"] and state not in _ALWAYS:
            continue
        found.append(
            {
                **dict(zip(("place", "label"), key, strict=True)),
                "state": state,
                "num_jobs": row["num_jobs"],
                "job_share": row["num_jobs"] / n if n else None,
                "gpu_time": row["gpu_time"],
                "gpu_time_share": row["gpu_time"] / total if total else None,
                "n": n,
                "left_out": row["left_out"],
                "unsized": unsized,
            }
        )
    return found
