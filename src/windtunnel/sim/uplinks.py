"""What crosses a cluster's uplinks, and how they are shared: max-min fair, as a fluid.

Every domain of the topology (a node, a rack, a block) has one uplink to the level above. A job on
several domains of a level crosses the uplink of each of them, and sends as much over each: what
leaves a domain in a ring all-reduce does not depend on how many of the job's GPUs it holds. At rate
1 that is ``traffic``. Where the jobs on an uplink want more than it carries, bandwidth is shared
max-min fairly (Bertsekas & Gallager, *Data Networks*, section 6.5.2: progressive filling), and a
job's rate is the part of its ``traffic`` that it gets: communication hides behind computation until
it is all that a job waits for. The core above the highest stated level never limits anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.levels import HOSTS
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.slowdown import Slowdown


class Uplinks:
    """The uplinks of a cluster's domains, those of one level behind those of another.

    Attributes:
        traffic: what a job sends over each uplink that it crosses at rate 1, GB/s.
        levels: of each level with uplinks the uplink of each node, lists of n.
        capacity: what each uplink carries, GB/s.

    Raises:
        SpecError: the model names a level that the cluster lacks.
    """

    def __init__(self, model: Slowdown, cluster: ClusterSpec) -> None:
        names, paths = cluster.level_paths
        known = {name: [path[: at + 1] for path in paths] for at, name in enumerate(names)}
        hosts: list[tuple[str, ...]] = [(str(node),) for node in range(cluster.num_nodes)]
        known |= dict.fromkeys(HOSTS, hosts)
        self.traffic = model.traffic
        self.levels: list[list[int]] = []
        self.capacity: list[float] = []
        for name, carries in model.links.items():
            if name not in known:
                raise SpecError.unknown(f"slowdown.links.{name}", name, [*names, HOSTS[0]])
            first = len(self.capacity)
            numbers = {domain: first + at for at, domain in enumerate(dict.fromkeys(known[name]))}
            self.levels.append([numbers[domain] for domain in known[name]])
            self.capacity += [carries] * len(numbers)

    def crossed(self, nodes: Iterable[int]) -> list[int]:
        """Return the uplinks that a job on these nodes crosses."""
        held, found = list(nodes), list[int]()
        for level in self.levels:
            own = dict.fromkeys(level[node] for node in held)
            found += own if len(own) > 1 else ()
        return found


def fair_rates(
    crossing: Mapping[int, Sequence[int]], capacity: Sequence[float], traffic: float
) -> dict[int, float]:
    """Return the rate of each job, by what max-min fair sharing gives it.

    Args:
        crossing: job -> the uplinks that it crosses, at least one.
        capacity: of each uplink, GB/s.
        traffic: what each job wants of each, GB/s.

    >>> fair_rates({0: [0, 1], 1: [1, 2], 2: [1, 3]}, [9.0, 6.0, 1.0, 9.0], 4.0)
    {0: 0.625, 1: 0.25, 2: 0.625}
    """
    spare, jobs_on = list(capacity), [0] * len(capacity)
    for links in crossing.values():
        for link in links:
            jobs_on[link] += 1
    rates = dict.fromkeys(crossing, 1.0)
    left = set(crossing)
    while left:
        tight, least = -1, traffic
        for link, count in enumerate(jobs_on):
            if count and spare[link] / count < least:
                tight, least = link, spare[link] / count
        if tight < 0:
            break
        for job in [job for job in left if tight in crossing[job]]:
            left.remove(job)
            rates[job] = least / traffic
            for link in crossing[job]:
                jobs_on[link] -= 1
                spare[link] -= least
    return rates
