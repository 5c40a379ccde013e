"""Who submits the jobs, and who holds the GPUs? Shares of jobs and of GPU time by a property."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.characterize.groups import NONE, size_class, size_labels
from windtunnel.characterize.relation import relation
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.companions import Relation

#: Properties that jobs can be told apart by.
SHARES_BY: tuple[str, ...] = (
    *("num_gpus", "vc", "user", "workload", "template", "status", "gpu_type"),
)


def shares(jobs: Relation, by: str) -> pa.Table:
    """Return the share of jobs and of GPU time of each value of a property.

    Args:
        by: one of `SHARES_BY`; ``num_gpus`` means the size classes of `windtunnel.sim.metrics`.

    Returns:
        Columns ``by`` (text; ``"(none)"`` where unknown), ``num_jobs`` int64, ``job_share``
        (0..1), ``gpu_time`` (GPU-seconds), ``gpu_time_share`` (0..1, null where there is no GPU
        time at all), ``left_out`` int64 (jobs in no GPU time: size or duration unknown). Size
        classes in order of size, everything else by GPU time, most first, then by name.

    Raises:
        SpecError: ``by`` is none of `SHARES_BY`.
    """
    import ibis

    if by not in SHARES_BY:
        raise SpecError.unknown("by", by, SHARES_BY)
    table = relation(jobs, ("num_gpus", "duration", by))
    place = size_class(table.num_gpus) if by == "num_gpus" else ibis.literal(0)
    group = ibis.literal(NONE) if by == "num_gpus" else table[by].fill_null(NONE)
    keyed = table.select(place=place, label=group, gpu_time=table.num_gpus * table.duration)
    sums = keyed.group_by(["place", "label"]).aggregate(
        num_jobs=keyed.count(),
        gpu_time=keyed.gpu_time.sum().fill_null(0.0),
        left_out=keyed.gpu_time.isnull().sum(),
    )
    if by == "num_gpus":
        sums = sums.mutate(label=ibis.array(list(size_labels()))[sums.place])
    total = sums.gpu_time.sum().over(ibis.window())
    shared = sums.mutate(
        job_share=sums.num_jobs / sums.num_jobs.sum().over(ibis.window()),
        gpu_time_share=sums.gpu_time / total.nullif(0.0),
    )
    ordered = shared.order_by([shared.place, shared.gpu_time.desc(), shared.label])
    columns = {
        by: ordered.label,
        "num_jobs": ordered.num_jobs,
        "job_share": ordered.job_share,
        "gpu_time": ordered.gpu_time,
        "gpu_time_share": ordered.gpu_time_share,
        "left_out": ordered.left_out,
    }
    return ordered.select(**columns).to_pyarrow()
