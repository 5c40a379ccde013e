"""Do tasks that share a busy GPU get in each other's way?

"MLaaS in the Wild" (Weng et al., NSDI'22, section 5): of the GPUs at 95 % utilisation and above,
few have two workers or more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.levels import gpu_names, one_row_a_gpu, run_intervals
from windtunnel.characterize.relation import LeftOut, rows, why

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from windtunnel.companions import Relation

#: Utilisation of a GPU from which on it counts as busy.
BUSY = 0.95
#: A sum of utilisations is rounded to this many decimals, so that float dust decides nothing.
_DECIMALS = 6


def colocation(tasks: Relation) -> pa.Table:
    """Return for how long GPUs had one worker, two workers, ..., and were busy meanwhile.

    Between two events (a task begins or ends on it) a GPU has a number of workers and a
    utilisation: the sum of what its tasks use. A task's use is its lifetime mean, spread evenly
    over the GPUs that it names or asked for, whichever are more (a request of 8 with one GPU
    named uses an eighth there). The answer is exact in these intervals; there is no sampling step.

    Returns:
        A row a number of workers >= 1, ascending: ``workers``, ``gpu_time`` (GPU-seconds),
        ``busy_gpu_time`` (of it at `BUSY` and above), ``num_gpus`` and ``busy_gpus`` (distinct
        GPUs that had so many workers at some time, and were busy then), ``n`` (tasks in the
        answer), ``left_out`` and ``why``.

    Raises:
        SchemaError: the table lacks a column.
    """
    import pyarrow as pa

    stretches, n, left_out = _stretches(tasks)
    at_work = (stretches.use >= BUSY).ifelse(stretches.length, 0.0)
    per_gpu = stretches.group_by(["workers", "node", "gpu"]).aggregate(
        gpu_time=stretches.length.sum(), busy_gpu_time=at_work.sum()
    )
    found = (
        per_gpu.group_by("workers")
        .aggregate(
            gpu_time=per_gpu.gpu_time.sum(),
            busy_gpu_time=per_gpu.busy_gpu_time.sum(),
            num_gpus=per_gpu.count(),
            busy_gpus=per_gpu.count(where=per_gpu.busy_gpu_time > 0),
        )
        .order_by("workers")
        .to_pyarrow()
    )
    count = found.num_rows
    for name, values in (
        ("n", pa.array([n] * count, pa.int64())),
        ("left_out", pa.array([sum(left_out.values())] * count, pa.int64())),
        ("why", pa.array([why(left_out)] * count, pa.string())),
    ):
        found = found.append_column(name, values)
    return found


def contention(tasks: Relation, *, busy: float = BUSY) -> dict[str, Any]:
    """Return the share of busy GPU time that several workers shared.

    Args:
        busy: utilisation (0..1) from which on a GPU counts as busy.

    Returns:
        ``busy_gpu_time`` (GPU-seconds at ``busy`` and above), ``shared_busy_gpu_time`` (of it
        with two workers or more), ``share`` (their ratio; None where no GPU was ever busy), ``n``,
        ``left_out`` (reason -> tasks).

    Raises:
        SchemaError: the table lacks a column.
    """
    stretches, n, left_out = _stretches(tasks)
    at_work = stretches.filter(stretches.use >= busy)
    length = at_work.length
    (found,) = rows(
        at_work.aggregate(
            busy_gpu_time=length.sum().fill_null(0.0),
            shared_busy_gpu_time=length.sum(where=at_work.workers > 1).fill_null(0.0),
        )
    )
    total, shared = found["busy_gpu_time"], found["shared_busy_gpu_time"]
    return {**found, "share": shared / total if total else None, "n": n, "left_out": left_out}


def _stretches(tasks: Relation) -> tuple[Any, int, LeftOut]:
    """Return per GPU the stretches of time with workers: node, gpu, workers, use, length (s)."""
    import ibis

    ran, n, left_out = run_intervals(tasks, ("node", "gpu", "gpus_used", "num_gpus"), _unusable)
    named = gpu_names(ran).length()
    asked = ran.num_gpus.ceil().fill_null(0)
    held = one_row_a_gpu(ran.mutate(use=ran.gpus_used / (asked > named).ifelse(asked, named)))

    def at(time: str, sign: int) -> Any:
        return held.select("node", "gpu", time=held[time], workers=sign, use=held.use * sign)

    events = ibis.union(at("begin", 1), at("end", -1))
    changes = events.group_by(["node", "gpu", "time"]).aggregate(
        workers=events.workers.sum(), use=events.use.sum()
    )
    so_far = ibis.window(group_by=["node", "gpu"], order_by="time", preceding=None, following=0)
    on_gpu = ibis.window(group_by=["node", "gpu"], order_by="time")
    running = changes.mutate(
        workers=changes.workers.sum().over(so_far).cast("int64"),
        use=changes.use.sum().over(so_far).round(_DECIMALS),
        length=changes.time.lead().over(on_gpu) - changes.time,
    )
    return running.filter((running.workers > 0) & (running.length > 0)), n, left_out


def _unusable(table: Any) -> Mapping[str, Any]:
    return {
        "no node": table.node.isnull(),
        "no gpu": table.gpu.isnull(),
        "no gpus_used": table.gpus_used.isnull(),
    }
