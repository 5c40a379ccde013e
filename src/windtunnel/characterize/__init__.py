"""What a trace looks like: pure functions from tables to numbers, one question a module."""

from windtunnel.characterize.arrivals import arrival_series, arrivals_by, hourly_boxes
from windtunnel.characterize.attempts import attempt_wait_cdf, retries, waits_by_nodes
from windtunnel.characterize.boxes import box_statistics
from windtunnel.characterize.cdf import count_cdf, sum_cdf
from windtunnel.characterize.concentration import concentration, top_users
from windtunnel.characterize.distributions import distribution
from windtunnel.characterize.facts import FACTS, source_fact
from windtunnel.characterize.failures import failures_by, time_to_failure
from windtunnel.characterize.gangs import gang_sizes, gangs_of_tasks
from windtunnel.characterize.grids import GPU_GRID, POWERS_DURATION, POWERS_QUEUE
from windtunnel.characterize.groups import GROUPS_BY
from windtunnel.characterize.mix import workload_mix
from windtunnel.characterize.overview import overview
from windtunnel.characterize.recurrence import recurrence
from windtunnel.characterize.series import throughput_series, usage_series
from windtunnel.characterize.shares import SHARES_BY, shares
from windtunnel.characterize.spread import quantile_curve, spread_by
from windtunnel.characterize.states import state_shares, states_by
from windtunnel.characterize.summary import ClusterSummary, cluster_summary, summary_table
from windtunnel.characterize.waits import waited_share_cdf, waited_shares

__all__ = [
    "FACTS",
    "GPU_GRID",
    "GROUPS_BY",
    "POWERS_DURATION",
    "POWERS_QUEUE",
    "SHARES_BY",
    "ClusterSummary",
    "arrival_series",
    "arrivals_by",
    "attempt_wait_cdf",
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
    "retries",
    "shares",
    "source_fact",
    "spread_by",
    "state_shares",
    "states_by",
    "sum_cdf",
    "summary_table",
    "throughput_series",
    "time_to_failure",
    "top_users",
    "usage_series",
    "waited_share_cdf",
    "waited_shares",
    "waits_by_nodes",
    "workload_mix",
]
