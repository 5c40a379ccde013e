"""The comparison of schedulers of reconfigurable jobs: traces x policies x penalties, in one table.

Results on Morphling's workloads are ruled by what a launch costs and by the large LLaMA jobs, so
every comparison is made with the penalty and without (MLSys'25 artifact, section 6 of its study).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.sim.elastic import measures
from windtunnel.sim.elastic.work import PENALTY
from windtunnel.study.simulate import simulate
from windtunnel.traces.open import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome

#: Every scheduler of the comparison; the first is the one the others are held against.
SCHEDULERS: tuple[str, ...] = (
    "fixed-plan",
    "shortest-first",
    "least-area-first",
    "equal-share",
    "synergy",
    "antman",
    "pollux:sia",
    "morphling:neither",
    "morphling:plans",
    "morphling:resources",
    "morphling:priced",
    "morphling",
)
TRACES: tuple[str, ...] = ("morphling:base", "morphling:bp", "morphling:mt")


@dataclass(frozen=True)
class ElasticComparison:
    """What came of it.

    Attributes:
        outcomes: (trace, policy, penalty in s) -> outcome, in the order in which they were flown.
    """

    outcomes: dict[tuple[str, str, float], Outcome]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a run.

        Keys: ``trace``, ``policy``, ``penalty`` (s); ``avg_jct``, ``p50_jct``, ``p90_jct``,
        ``p99_jct``, ``last_end`` (s from the trace's start), ``avg_jct_guaranteed`` and
        ``avg_jct_best_effort`` (None without such jobs), ``reconfigurations_per_job``,
        ``utilization``, ``useful_share``, ``promises_kept_running``, ``num_finished``.
        """
        return [
            {"trace": trace, "policy": policy, "penalty": penalty, **_numbers(outcome)}
            for (trace, policy, penalty), outcome in self.outcomes.items()
        ]


def compare_elastic(
    traces: Sequence[str] = TRACES,
    policies: Sequence[str] = SCHEDULERS,
    penalties: Sequence[float] = (PENALTY, 0.0),
    *,
    cluster: ClusterSpec | str = "morphling",
    on_done: Callable[[str], None] | None = None,
) -> ElasticComparison:
    """Fly traces under elastic policies, with each penalty.

    Args:
        traces: as `windtunnel.open_trace` takes them.
        policies: names, elastic ones.
        penalties: seconds of a launch or change.
        cluster: where.
        on_done: called with the policy's name after each run.

    Raises:
        WindtunnelError: a trace cannot be read, or whatever `simulate` raises.
    """
    jobs = {trace: open_trace(trace).jobs for trace in traces}
    outcomes = {}
    for trace in traces:
        for penalty in penalties:
            for policy in policies:
                run = simulate(jobs[trace], cluster, policy, penalty=penalty)
                outcomes[trace, policy, float(penalty)] = run
                if on_done is not None:
                    on_done(policy)
    return ElasticComparison(outcomes)


def _numbers(outcome: Outcome) -> dict[str, Any]:
    found = outcome.metrics()
    classes = {row["class"]: row["avg_jct"] for row in measures.by_class(outcome).to_pylist()}
    return {
        **{key: found[key] for key in ("avg_jct", "p50_jct", "p90_jct", "p99_jct")},
        "last_end": found["makespan"],
        "avg_jct_guaranteed": classes.get("guaranteed"),
        "avg_jct_best_effort": classes.get("best-effort"),
        **{
            key: found[key]
            for key in (
                *("reconfigurations_per_job", "utilization", "useful_share"),
                *("promises_kept_running", "num_finished"),
            )
        },
    }
