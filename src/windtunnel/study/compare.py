"""`compare`: the same jobs on the same cluster under several policies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel import schema
from windtunnel.cluster.parse import parse_cluster
from windtunnel.errors import SpecError
from windtunnel.policies import resolve_policy
from windtunnel.sim.contract import rule_of_several
from windtunnel.study.flight_options import FlightOptions
from windtunnel.study.foresight import Foresight
from windtunnel.study.simulate import fly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome


@dataclass(frozen=True)
class Comparison:
    """Several runs of the same jobs on the same cluster.

    Attributes:
        outcomes: label (the policy's name) -> outcome, in the order asked for; the first is what
            the others are compared with.
    """

    outcomes: dict[str, Outcome]

    @property
    def table(self) -> pa.Table:
        """One row a policy: ``policy``, then the metrics of `Outcome.metrics`."""
        rows = [{"policy": label, **o.metrics()} for label, o in self.outcomes.items()]
        return pa.Table.from_pylist(rows)

    def __getitem__(self, label: str) -> Outcome:
        return self.outcomes[label]


def compare(
    jobs: Any,
    cluster: ClusterSpec | str,
    policies: Iterable[Any],
    *,
    on_done: Callable[[str], None] | None = None,
    **options: Any,
) -> Comparison:
    """Fly the same jobs under several policies.

    Args:
        jobs: as for `simulate`.
        cluster: as for `simulate`.
        policies: names or objects, in the order to show them; the first is the baseline.
        on_done: called with the label after each run (for progress bars).
        options: further arguments of `simulate`, the same for all; ``queueing`` is for the policies
            that have a line, not for those of tier 3.

    Raises:
        SpecError: no policy, or one of them twice; and whatever `simulate` raises.
    """
    table = schema.as_jobs(jobs)
    spec = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    chosen = [resolve_policy(given) for given in policies]  # all names are checked before any run
    labels = [policy.label for policy in chosen]
    if not labels or len(set(labels)) < len(labels):
        raise SpecError("policies", f"found {labels}; expected at least one policy, each once")
    settings = FlightOptions(**options)
    foresight = Foresight(table, settings.seed)
    for policy in chosen:  # what cannot be ordered by is told before any run
        foresight.column_of(policy)
    outcomes = {}
    for label, policy in zip(labels, chosen, strict=True):
        own = replace(settings, queueing=rule_of_several(settings.queueing, policy))
        outcomes[label] = fly(table, spec, policy, own, foresight)
        if on_done is not None:
            on_done(label)
    return Comparison(outcomes)
