"""What does sharing GPUs save?

"MLaaS in the Wild" (Weng et al., NSDI'22, section 3): a task that asks for a part of a GPU would
hold a whole one without sharing. The GPUs really occupied are the distinct (node, gpu) pairs with
a running task; without sharing the same tasks would hold the sum of ceil(num_gpus).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.levels import gpu_names, levels, one_row_a_gpu, run_intervals
from windtunnel.characterize.relation import LeftOut, why

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from windtunnel.characterize.levels import Levels, Sample
    from windtunnel.companions import Relation

#: What is added up over the running tasks, and over the GPUs that they are named on.
_WEIGHTS: tuple[str, ...] = ("num_tasks", "asked", "unshared", "unnamed", "named")


def sharing_over_time(
    tasks: Relation, *, step: float = 3600.0, sample: Sample = "instant"
) -> pa.Table:
    """Return how many GPUs the running tasks occupy, and would occupy without sharing.

    A task counts where its node, its GPUs, its request and its times are known; several GPUs are
    joined by ``|``. A GPU that a task asked for but the trace does not name (a request of 2 with
    one GPU named) counts as a GPU of its own, so that a gap in the record is no saving.

    Returns:
        A row a step: ``time`` (s), ``num_tasks`` (running), ``gpus_asked`` (sum of num_gpus),
        ``gpus_unshared`` (sum of ceil(num_gpus)), ``gpus_occupied``, ``gpus_saved`` (unshared -
        occupied; negative where tasks hold more than they asked for), ``saved_share`` (of
        unshared; null where that is 0), ``n`` (tasks in the answer), ``left_out`` and ``why``.

    Raises:
        SchemaError: the table lacks a column.
        SpecError: an unusable ``step``.
    """
    import pyarrow as pa

    found, n, left_out = _levels(tasks, step, sample)
    unshared, occupied = _unshared_and_occupied(found)
    count = len(found.times)
    saved = unshared - occupied
    share = np.divide(saved, unshared, out=np.full(count, np.nan), where=unshared > 0)
    return pa.table(
        {
            "time": found.times,
            "num_tasks": found.values["num_tasks"].reshape(-1),
            "gpus_asked": found.values["asked"].reshape(-1),
            "gpus_unshared": unshared,
            "gpus_occupied": occupied,
            "gpus_saved": saved,
            "saved_share": pa.array(share, pa.float64(), from_pandas=True),
            "n": np.full(count, n),
            "left_out": np.full(count, sum(left_out.values())),
            "why": pa.array([why(left_out)] * count, pa.string()),
        }
    )


def sharing_savings(
    tasks: Relation, *, step: float = 3600.0, sample: Sample = "instant"
) -> dict[str, Any]:
    """Return what sharing saves on average and at its peak, over the steps of `sharing_over_time`.

    Returns:
        ``steps`` (with a running task); ``mean_saved`` (GPUs, their mean); ``saved_share`` (sum of
        saved / sum of unshared over them); ``peak_saved`` (GPUs) and ``peak_time`` (s, the first
        such step); None where there is no such step; ``n``, ``left_out`` (reason -> tasks).

    Raises:
        SchemaError: the table lacks a column.
        SpecError: an unusable ``step``.
    """
    found, n, left_out = _levels(tasks, step, sample)
    unshared, occupied = _unshared_and_occupied(found)
    used = unshared > 0
    times, unshared, saved = found.times[used], unshared[used], (unshared - occupied)[used]
    some = len(times) > 0
    peak = int(np.argmax(saved)) if some else 0
    return {
        "steps": len(times),
        "mean_saved": float(saved.mean()) if some else None,
        "saved_share": float(saved.sum() / unshared.sum()) if some else None,
        "peak_saved": float(saved[peak]) if some else None,
        "peak_time": float(times[peak]) if some else None,
        "n": n,
        "left_out": left_out,
    }


def _unshared_and_occupied(found: Levels) -> tuple[np.ndarray, np.ndarray]:
    """Return GPUs without sharing and GPUs really occupied, each of shape (steps,)."""
    values = {name: level.reshape(-1) for name, level in found.values.items()}
    return values["unshared"], values["unnamed"] + values["named"]


def _levels(tasks: Relation, step: float, sample: Sample) -> tuple[Levels, int, LeftOut]:
    """Return the levels of `_WEIGHTS`, the tasks in them, and the tasks left out."""
    import ibis

    ran, n, left_out = run_intervals(tasks, ("node", "gpu", "num_gpus"), _unusable)
    one, none = ibis.literal(1.0), ibis.literal(0.0)
    whole = ran.num_gpus.ceil().cast("float64")
    named = gpu_names(ran).length().cast("float64")
    lacking = (named < whole).ifelse(whole - named, 0.0)
    of_tasks = ran.select(
        "begin", "end", num_tasks=one, asked=ran.num_gpus, unshared=whole, unnamed=lacking,
        named=none,
    )  # fmt: skip
    of_gpus = _occupations(ran).select(
        "begin", "end", num_tasks=none, asked=none, unshared=none, unnamed=none, named=one
    )
    return levels(ibis.union(of_tasks, of_gpus), _WEIGHTS, step=step, sample=sample), n, left_out


def _unusable(table: Any) -> Mapping[str, Any]:
    return {
        "no num_gpus": table.num_gpus.isnull(),
        "asks for no GPU": table.num_gpus <= 0,
        "no node": table.node.isnull(),
        "no gpu": table.gpu.isnull(),
    }


def _occupations(ran: Any) -> Any:
    """Return disjoint intervals whose union per (node, gpu) is that of the tasks on it.

    Each task keeps the part of its interval that no earlier task of its GPU covers.
    """
    import ibis

    held = one_row_a_gpu(ran)
    earlier = ibis.window(group_by=["node", "gpu"], order_by=["begin", "end"], preceding=(None, 1))
    covered = held.mutate(until=held.end.max().over(earlier))
    begin = (covered.until > covered.begin).fill_null(False).ifelse(covered.until, covered.begin)
    cut = covered.mutate(begin=begin)
    return cut.filter(cut.end > cut.begin)
