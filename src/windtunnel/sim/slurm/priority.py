"""Priorities of pending jobs: ``priority/basic`` and ``priority/multifactor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from windtunnel.sim.slurm.requests import SlurmRequest
    from windtunnel.site.slurm import SlurmSite

#: The first job's number under ``priority/basic``; each further job has one less.
BASIC_FIRST = 4_294_901_759


class Factors(msgspec.Struct, frozen=True):
    """The weighted factors of a priority."""

    age: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    assoc: float = 0.0
    nice: int = 0

    @property
    def sum(self) -> float:
        """The priority before it is cut to a whole number, at least 1: what has 0 is held."""
        parts = self.age + self.fair_share + self.job_size + self.partition + self.qos
        return max(parts + self.assoc - self.nice, 1.0)

    @property
    def total(self) -> int:
        """The priority."""
        return int(self.sum)


class Multifactor:
    """The factors of a site; what changes with time is given."""

    def __init__(self, site: SlurmSite) -> None:
        self.weights = site.settings.priority
        self.partitions = {part.name: part for part in site.partitions}
        self.default = next((p for p in site.partitions if p.is_default), site.partitions[0])
        self.most_factor = max((part.job_factor for part in site.partitions), default=0)
        self.qos = {qos.name: qos.priority for qos in site.qos}
        self.most_qos = max(self.qos.values(), default=0)
        self.assoc = {(a.account, a.user): a.priority for a in site.associations}
        self.most_assoc = max(self.assoc.values(), default=0)
        self.num_nodes = len(site.nodes)
        self.num_cpus = sum(node.cpus for node in site.nodes)

    def of(self, request: SlurmRequest, *, age: float, fair_share: float, limit: int) -> Factors:
        """Return a job's factors.

        ``age``: s since it could have run; ``limit``: its time limit, s.
        """
        weights = self.weights
        name = request.partitions[0] if request.partitions else self.default.name
        part = self.partitions.get(name, self.default).job_factor
        qos = self.qos.get(request.qos, 0)
        assoc = self.assoc.get((request.account, request.user), 0)
        return Factors(
            age=weights.age * min(1.0, max(age, 0.0) / weights.max_age),
            fair_share=weights.fair_share * fair_share,
            job_size=weights.job_size * self._size(request, limit),
            partition=weights.partition * _part(part, self.most_factor),
            qos=weights.qos * _part(qos, self.most_qos),
            assoc=weights.assoc * _part(assoc, self.most_assoc),
            nice=request.nice,
        )

    def _size(self, request: SlurmRequest, limit: int) -> float:
        cpus = max(request.cpus, request.node_cpus * request.min_nodes)
        if "SMALL_RELATIVE_TO_TIME" in self.weights.flags:
            size = cpus / max(limit / 60, 1) / self.num_cpus
            return 1 - size if self.weights.favor_small else size
        nodes, cores = request.min_nodes / self.num_nodes, cpus / self.num_cpus
        if self.weights.favor_small:
            nodes, cores = 1 - nodes, 1 - cores
        return (nodes + cores) / 2


def _part(value: int, most: int) -> float:
    return value / most if most > 0 else 0.0
