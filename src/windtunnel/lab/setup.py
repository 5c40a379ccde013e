"""`Setup`: where the controls of the lab stand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.placements import PLACEMENTS
from windtunnel.policies.catalogue import POLICIES
from windtunnel.site.scheduler import QUEUEING, SHARING, Scheduler

#: The word for leaving a choice to the policy, the placement or the trace.
AUTO = "auto"
#: The word for no GPU type in particular.
ANY = "any"


@dataclass(frozen=True)
class Setup:
    """One position of all controls.

    Attributes:
        nodes: number of equal nodes. Where they, their GPUs and the type stand as `Bench.first`
            has them, the cluster is the trace's own, if it comes with one.
        gpus_per_node: GPUs of each.
        gpu_type: their type; `ANY` = of no particular type.
        load: submissions per time, as a multiple of the trace's.
        policies: the two policies that are compared, the first being the baseline.
        queueing: head-of-line rule of both; `AUTO` = each policy's own.
        placement: where jobs go.
        sharing: how jobs share the GPUs of a node; `AUTO` = as the jobs need it.
    """

    nodes: int
    gpus_per_node: int
    gpu_type: str = ANY
    load: float = 1.0
    policies: tuple[str, str] = ("fifo", "srtf")
    queueing: str = AUTO
    placement: str = "best_fit"
    sharing: str = AUTO

    def runs(self) -> tuple[Setup, ...]:
        """Return a setup a distinct policy, with that policy alone in both places."""
        return tuple(replace(self, policies=(one, one)) for one in dict.fromkeys(self.policies))

    def scheduled_by(self, scheduler: Scheduler) -> Setup:
        """Return it with what a scheduler says, as far as there are controls for it."""
        stated = {
            "queueing": (scheduler.queueing, queueing_rules()),
            "placement": (scheduler.placement, placements()),
            "sharing": (scheduler.sharing, sharing_rules()),
        }
        known = {name: value for name, (value, words) in stated.items() if value in words}
        one, two = self.policies
        if scheduler.policy in fast_policies() and scheduler.policy != one:
            one, two = scheduler.policy, one if scheduler.policy == two else two
        return replace(self, policies=(one, two), **known)

    def equal_nodes(self) -> ClusterSpec:
        """Return the cluster of equal nodes."""
        kind = None if self.gpu_type == ANY else self.gpu_type
        return ClusterSpec.uniform(self.nodes, self.gpus_per_node, kind)


@cache
def fast_policies() -> tuple[str, ...]:
    """Return the policies that are asked nothing while they fly, and so a page can follow."""
    return tuple(
        name
        for name, policy in POLICIES.items()
        if policy.tier < 3  # noqa: PLR2004 - the tier's number is its name
    )


def queueing_rules() -> tuple[str, ...]:
    """Return the words for the head-of-line rule."""
    return (AUTO, *QUEUEING)


def placements() -> tuple[str, ...]:
    """Return the placements' names, the usual one first."""
    return ("best_fit", *(name for name in PLACEMENTS if name != "best_fit"))


def sharing_rules() -> tuple[str, ...]:
    """Return the words for how GPUs are shared."""
    return (AUTO, *SHARING)
