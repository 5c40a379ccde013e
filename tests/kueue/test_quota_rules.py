"""Quotas of random trees of cohorts against the rules worked out anew, straight from the text.

What a node may use is worked out here without bubbling: from all usage below, top down.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import check_cases
import pytest

from windtunnel.policies.kueue import objects
from windtunnel.policies.kueue.quota_tree import QuotaNode, QuotaTree
from windtunnel.policies.kueue.shares import dominant_share

WHAT = ("f", "gpu")


class Plain:
    """A node whose numbers are worked out each time from its children."""

    def __init__(
        self, name: str, parent: Plain | None, quota: objects.Quota, weight: float
    ) -> None:
        self.name, self.parent, self.quota, self.weight = name, parent, quota, weight
        self.children: list[Plain] = []
        self.own_use = 0
        if parent is not None:
            parent.children.append(self)

    @property
    def subtree(self) -> int:
        return self.quota.nominal + sum(c.subtree - c.local for c in self.children)

    @property
    def local(self) -> int:
        limit = self.quota.lending_limit
        return 0 if limit is None or self.parent is None else max(0, self.subtree - limit)

    @property
    def use(self) -> int:
        """All that is used here: its own, and what the children use past what they keep."""
        return self.own_use + sum(max(0, c.use - c.local) for c in self.children)

    @property
    def available(self) -> int:
        if self.parent is None:
            return self.subtree - self.use
        from_above = self.parent.available
        if self.quota.borrowing_limit is not None:
            lent = self.subtree - self.local
            most = lent - max(0, self.use - self.local) + self.quota.borrowing_limit
            from_above = min(from_above, most)
        return max(0, self.local - self.use) + from_above

    @property
    def potential(self) -> int:
        if self.parent is None:
            return self.subtree
        most = self.local + self.parent.potential
        limit = self.quota.borrowing_limit
        return most if limit is None else min(most, self.subtree + limit)

    @property
    def height(self) -> int:
        return max((c.height + 1 for c in self.children), default=0)

    def borrowing_level(self, amount: int) -> int:
        if self.parent is None or self.use + amount <= self.subtree:
            return 0
        rest, node = amount - max(0, self.local - self.use), self.parent
        while node.use + rest > node.subtree and node.parent is not None:
            rest -= max(0, node.local - node.use)
            node = node.parent
        return node.height

    @property
    def share(self) -> Fraction | None:
        """The unweighted dominant share; None where nothing could be lent."""
        if self.parent is None:
            return Fraction(0)
        lendable = self.parent.potential
        over = max(0, self.use - self.subtree)
        return Fraction(over * 1000, lendable) if lendable else None


def grown(rng: random.Random) -> tuple[QuotaTree, dict[str, Plain]]:
    """Return a random tree of one to six cohorts and two to eight queues, both ways."""

    def limit() -> int | None:
        return rng.choice([None, None, 0, rng.randrange(8)])

    plain: dict[str, Plain] = {}
    cohorts, queues = [], []
    for k in range(rng.randint(1, 6)):
        above = rng.choice([None, *plain.values()]) if plain else None
        nominal = rng.choice([0, 0, rng.randrange(12)])
        bounds = (limit(), limit()) if above else (None, None)
        quota = objects.Quota(nominal, *bounds)
        weight = rng.choice([1.0, 0.5, 2.0])
        plain[f"c{k}"] = Plain(f"c{k}", above, quota, weight)
        groups = (objects.ResourceGroup((objects.FlavorQuotas("f", {"gpu": quota}),)),)
        cohorts.append(objects.Cohort(f"c{k}", above.name if above else "", weight, groups))
    names = list(plain.values())
    for k in range(rng.randint(2, 8)):
        above = rng.choice([*names, *names, None])
        bounds = (limit(), limit()) if above else (None, None)
        quota = objects.Quota(rng.randrange(12), *bounds)
        groups = (objects.ResourceGroup((objects.FlavorQuotas("f", {"gpu": quota}),)),)
        plain[f"q{k}"] = Plain(f"q{k}", above, quota, 1.0)
        queues.append(
            objects.ClusterQueue(f"q{k}", above.name if above else "", resource_groups=groups)
        )
    return QuotaTree(queues, cohorts), plain


def both(tree: QuotaTree, plain: dict[str, Plain]) -> list[tuple[QuotaNode, Plain]]:
    return [(node, plain[node.name]) for node in tree.nodes()]


def compare(tree: QuotaTree, plain: dict[str, Plain], rng: random.Random) -> None:
    for node, known in both(tree, plain):
        available = max(0, known.available) if node.queue is not None else known.available
        assert node.subtree.get(WHAT, 0) == known.subtree
        assert node.local.get(WHAT, 0) == known.local
        assert node.usage.get(WHAT, 0) == known.use
        assert node.available(WHAT) == available
        assert node.potential(WHAT) == known.potential
        assert node.height == known.height
        amount = rng.randint(1, 10)
        assert node.borrowing_level(WHAT, amount)[0] == known.borrowing_level(amount)
        share: Any = known.share
        dominant = dominant_share(node)
        if share is not None and known.parent is not None and known.weight:
            assert dominant.value == pytest.approx(float(share) / known.weight, abs=1e-9)
            assert dominant.borrows == (known.use > known.subtree)


@pytest.mark.sample(15)
@pytest.mark.parametrize("seed", range(60))
def test_random_trees(seed: int) -> None:
    """Whatever is used and given back, in whatever order, within quotas or past them."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    tree, plain = grown(rng)
    held: list[tuple[str, int]] = []
    compare(tree, plain, rng)
    for _ in range(25):
        if held and rng.random() < 0.4:
            name, amount = held.pop(rng.randrange(len(held)))
            tree.queues[name].give_back(WHAT, amount)
            plain[name].own_use -= amount
        else:
            name, amount = rng.choice(list(tree.queues)), rng.randint(1, 7)
            held.append((name, amount))
            tree.queues[name].use(WHAT, amount)
            plain[name].own_use += amount
        compare(tree, plain, rng)


@pytest.mark.parametrize(("cores", "goes"), [(4, [["x", "InCohortReclamation"]]), (8, [])])
def test_what_a_queue_keeps_for_itself_is_not_its_cohorts(cores: int, goes: list[Any]) -> None:
    """A request that is short of GPUs: its cohort's are enough, so whoever borrows them may go.

    But not where the cohort itself borrows cores: that the queue keeps 10 cores, and asks for 4,
    leaves the cohort none.
    """

    def queue(name: str, cohort: str, cores: int, gpus: int, lends: int | None = None) -> Any:
        quotas = {"cpu": {"nominal": cores, "lending_limit": lends}, "gpu": {"nominal": gpus}}
        return {
            "name": name,
            "cohort": cohort,
            "preemption": {"reclaim_within_cohort": "Any"},
            "resource_groups": [{"flavors": [{"flavor": "f", "quotas": quotas}]}],
        }

    def asks(name: str, queue: str, **requests: int) -> Any:
        pods = {"name": "main", "count": 1, "requests": requests}
        held = {"name": "main", "flavors": dict.fromkeys(requests, "f")}
        admission = {"cluster_queue": queue, "pod_sets": [held], "reserved_at": 0.0}
        return {"name": name, "uid": name, "pod_sets": [pods], "admission": admission}

    case = {
        "flavors": [{"name": "f"}],
        "cohorts": [{"name": "top"}, {"name": "low", "parent": "top"}],
        "cluster_queues": [
            queue("q", "low", 10, 0, lends=0),
            queue("p", "low", 4, 4),
            queue("d", "top", 10, 0),
        ],
        "workloads": [asks("y", "p", cpu=cores), asks("x", "d", gpu=4)],
        "incoming": {**asks("new", "q", cpu=4, gpu=4), "cluster_queue": "q"},
        "assignment": [
            {
                "pod_set": "main",
                "flavors": {"cpu": "f", "gpu": "f"},
                "mode": {"cpu": "Fit", "gpu": "Preempt"},
            }
        ],
    }
    assert check_cases.preemption(case)["preempted"] == goes
