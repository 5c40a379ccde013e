"""What a trace looks like: pure functions from tables to numbers, one question a module.

Arguments that the questions share: ``jobs``, ``tasks``, ``nodes`` and ``samples`` are tables of
`windtunnel.schema` and `windtunnel.companions`, in Arrow or Ibis; ``value`` is a fact
(`windtunnel.characterize.facts`); ``by`` is a property (`windtunnel.characterize.population`), one
row or curve a group, None = all jobs together; ``where`` is ``gpu``, ``cpu`` or ``all`` jobs;
``epoch`` is the UTC instant of time 0 (None = a Monday's midnight) and ``zone`` the IANA zone of
the wall clock (None = UTC), as in `windtunnel.traces.trace.TraceMetadata`.
"""

from windtunnel.characterize.arrivals import arrivals_by, hourly_boxes
from windtunnel.characterize.cdf import count_cdf, sum_cdf
from windtunnel.characterize.concentration import concentration, top_users
from windtunnel.characterize.facts import FACTS, source_fact
from windtunnel.characterize.failures import failures_by, time_to_failure
from windtunnel.characterize.gangs import gang_sizes, gangs_of_tasks
from windtunnel.characterize.grids import GPU_GRID, POWERS_DURATION, POWERS_QUEUE
from windtunnel.characterize.overview import distribution, overview
from windtunnel.characterize.population import GROUPS_BY
from windtunnel.characterize.recurrence import recurrence
from windtunnel.characterize.series import usage_series
from windtunnel.characterize.spread import box_statistics, quantile_curve, spread_by
from windtunnel.characterize.states import SHARES_BY, shares, state_shares, workload_mix
from windtunnel.characterize.summary import ClusterSummary, cluster_summary
from windtunnel.characterize.waits import waited_share_cdf, waited_shares

__all__ = [
    "FACTS",
    "GPU_GRID",
    "GROUPS_BY",
    "POWERS_DURATION",
    "POWERS_QUEUE",
    "SHARES_BY",
    "ClusterSummary",
    "arrivals_by",
    "box_statistics",
    "cluster_summary",
    "concentration",
    "count_cdf",
    "distribution",
    "failures_by",
    "gang_sizes",
    "gangs_of_tasks",
    "hourly_boxes",
    "overview",
    "quantile_curve",
    "recurrence",
    "shares",
    "source_fact",
    "spread_by",
    "state_shares",
    "sum_cdf",
    "time_to_failure",
    "top_users",
    "usage_series",
    "waited_share_cdf",
    "waited_shares",
    "workload_mix",
]
