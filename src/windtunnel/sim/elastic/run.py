"""An elastic run on the reference engine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.errors import PolicyError
from windtunnel.sim import reference
from windtunnel.sim.elastic.decisions import ElasticDecider
from windtunnel.sim.elastic.ledger import ElasticLedger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.elastic.work import Work
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem


def run(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    *,
    works: Sequence[Work],
    cores: Sequence[int | None],
    until: float = math.inf,
) -> Flight:
    """Fly the jobs under a policy that may resize them.

    Args:
        problem: jobs and cluster, with nodes and whole GPUs.
        policy: who runs next and how; of tier 3.
        placement: where a plain number of GPUs goes.
        works: what each flown job is, in order of arrival.
        cores: thousandths of cores of each node, None = not constrained.
        until: horizon in s; later events are not processed.

    Raises:
        PolicyError: the policy is of another tier, wants to be told of starts, decided something
            impossible, or lets jobs wait for ever.
    """
    if policy.tier != 3:  # noqa: PLR2004 - the tier's number is its name
        raise PolicyError(policy.label, "an elastic policy decides: decide(now, queue, cluster)")
    if policy.watches:
        message = "elastic runs tell nobody of starts and stops; look at cluster.running instead"
        raise PolicyError(policy.label, message)
    ledger = ElasticLedger(problem, placement, works, cores)
    return reference.fly(ledger, policy, ElasticDecider(ledger, policy), until)
