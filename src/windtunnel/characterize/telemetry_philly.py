"""Philly's utilisation of GPUs by status and size of jobs: figures 5 and 6 of its notebook.

msr-fiddle/philly-traces ``analysis``: for jobs of 1, 4, 8 and 16 GPUs, every minute from the one
in which an attempt starts to its end, the utilisation of each of the attempt's GPUs. Figure 6
takes jobs of 8 and 16 GPUs of all statuses together, and of them attempts on dedicated servers: at
most ``num_gpus / 8`` servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.characterize.relation import relation
from windtunnel.characterize.telemetry_counts import checked_percents, pooled
from windtunnel.characterize.telemetry_jobs import attributed, located
from windtunnel.characterize.telemetry_segments import segments_of
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.companions import Relation

#: Sizes of jobs that the figures show, GPUs.
SIZES: tuple[int, ...] = (1, 4, 8, 16)
#: Those of figure 6, and GPUs of a server.
LARGE: tuple[int, ...] = (8, 16)
SERVER_GPUS = 8
#: The status of jobs of all statuses together.
ALL = "all"
_MINUTE = 60.0
_ATTEMPTS = ("job_id", "node", "gpu", "start_time", "end_time", "attempt")
AT: tuple[float, ...] = (10, 25, 50, 75, 90, 99)


def philly_utilization(
    samples: Relation,
    holdings: Relation,
    jobs: Relation,
    *,
    metric: str = "gpu_util",
    dedicated: bool = False,
    minute_offset: float = 0.0,
    at: Sequence[float] = AT,
) -> pa.Table:
    """Return the distribution of GPU utilisation over the minutes of attempts.

    Attempts without a start or an end do not count. A minute in which one attempt of a job ends
    and the next starts counts for both. The notebook draws value against 100 i / (n - 1), which is
    this quantile.

    Args:
        samples: a sample a GPU and minute, in the trace's time.
        holdings: the attempts' GPUs (`windtunnel.companions.HOLDING_COLUMNS`) with a further
            column ``attempt``, the number of the job's attempt.
        jobs: ``job_id``, ``num_gpus`` (of the first attempt) and ``status``.
        metric: the metric's name.
        dedicated: figure 6: jobs of 8 and 16 GPUs, all statuses together (``"all"``), attempts on
            at most num_gpus / 8 servers.
        minute_offset: the trace's time 0 stands this many seconds behind a whole minute.
        at: percents from 0 to 100.

    Returns:
        One row a status, size and percent, in that order: ``status``, ``num_gpus`` int64,
        ``percent``, ``value`` (percent of a GPU), ``n`` int64, ``mean``.

    Raises:
        SchemaError: a column is missing, or a holding ends before it starts.
        SpecError: a percent is none, or ``minute_offset`` is not from 0 to 60.
    """
    import ibis

    if not 0 <= minute_offset < _MINUTE:
        raise SpecError(
            "minute_offset", f"found {quote(minute_offset)}; expected seconds from 0 to 60"
        )
    asked = checked_percents(at)
    held = _attempts(holdings, minute_offset)
    found = segments_of(held, held["holder"])
    owned = attributed(_unnamed(located(samples, metric, found)), found)
    kinds = ibis.memtable(_kinds(held, jobs, dedicated=dedicated))
    joined = owned.inner_join(kinds, ["job"])
    keyed = joined.select("status", "num_gpus", "value", "shared")
    rows = pooled(keyed, ("status", "num_gpus"), asked).to_pyarrow().to_pylist()
    order = {percent: place for place, percent in enumerate(asked)}
    rows.sort(key=lambda row: (row["status"], row["num_gpus"], order[row["percent"]]))
    kept = ("status", "num_gpus", "percent", "value", "n", "mean")
    kinds_of = (pa.string(), pa.int64(), pa.float64(), pa.float64(), pa.int64(), pa.float64())
    return pa.Table.from_pylist(
        [{name: row[name] for name in kept} for row in rows],
        schema=pa.schema(list(zip(kept, kinds_of, strict=True))),
    )


def _attempts(holdings: Relation, minute_offset: float) -> pa.Table:
    """Return whole attempts' holdings from the minute in which they start, and their names."""
    table = relation(holdings, _ATTEMPTS).to_pyarrow()
    known = pc.and_(pc.is_valid(table["start_time"]), pc.is_valid(table["end_time"]))
    table = table.filter(known)
    start = np.asarray(table["start_time"].to_numpy(), np.float64) + minute_offset
    floored = np.floor(start / _MINUTE) * _MINUTE - minute_offset
    place = table.schema.get_field_index("start_time")
    table = table.set_column(place, "start_time", pa.array(floored))
    attempt = table["attempt"].cast(pa.string())
    holder = pc.binary_join_element_wise(attempt, table["job_id"], "/")
    return table.append_column("holder", holder)


def _unnamed(placed: Any) -> Any:
    """Return samples without the jobs that their source names: attempts are told by holdings."""
    import ibis

    return placed.mutate(job_id=ibis.null("string"))


def _kinds(held: pa.Table, jobs: Relation, *, dedicated: bool) -> pa.Table:
    """Return the attempts that count: ``job`` (the attempt's name), ``status``, ``num_gpus``."""
    known = relation(jobs, ("job_id", "num_gpus", "status")).to_pyarrow()
    servers = held.group_by(["holder", "job_id"]).aggregate([("node", "count_distinct")])
    joined = servers.join(known, "job_id", join_type="inner")
    size = joined["num_gpus"].cast(pa.float64())
    sizes = LARGE if dedicated else SIZES
    counts = pc.is_in(size, value_set=pa.array([float(n) for n in sizes]))
    if dedicated:
        few = pc.less_equal(joined["node_count_distinct"], pc.divide(size, float(SERVER_GPUS)))
        counts = pc.and_(counts, few)
    status = pc.fill_null(joined["status"], "unknown")
    if dedicated:
        status = pa.array([ALL] * joined.num_rows, pa.string())
    whole = pc.if_else(counts, size, pa.scalar(0.0)).cast(pa.int64())
    kinds = pa.table({"job": joined["holder"], "status": status, "num_gpus": whole})
    return kinds.filter(counts)
