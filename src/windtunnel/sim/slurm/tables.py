"""`SlurmTables`: a site and its jobs as the kernel's tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from windtunnel import kernel
from windtunnel.errors import SpecError, quote
from windtunnel.sim.slurm.meters import Meters
from windtunnel.sim.slurm.preempting import Preempting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.slurm.requests import SlurmRequest
    from windtunnel.site.slurm import SlurmPartition, SlurmReservation, SlurmSite

#: A job without limits of its own or its partition's is planned for a year (slurmctld's own rule).
YEAR = 365 * 86400
#: More nodes than anybody has: ``-N`` was not given.
ANY_NODES = 500_000
_DEFAULTS = {
    "default_queue_depth": 100,
    "partition_job_depth": 0,
    "batch_sched_delay": 3,
    "sched_interval": 60,
    "sched_max_job_start": 0,
    "bf_resolution": 60,
    "bf_window": 1440,
    "bf_interval": 30,
    "bf_max_job_test": 500,
    "bf_max_job_start": 0,
    "bf_max_job_user": 0,
    "bf_max_job_part": 0,
    "bf_max_job_array_resv": 20,
    "bf_window_linear": 0,
}


#: Numbers of settings are smaller.
_MOST = 10_000_000
#: Further words of ``SchedulerParameters`` that are read, ...
_WORDS = (
    *("assoc_limit_stop", "defer", "pack_serial_at_end"),
    *("preempt_reorder_count", "preempt_strict_order", "preempt_youngest_first"),
)
#: ... and those that are of no consequence where computing takes no time, as here.
_OF_NO_TIME = (
    *("bf_continue", "bf_max_time", "bf_yield_interval", "bf_yield_sleep", "bf_yield_rpc_cnt"),
    *("max_rpc_cnt", "max_sched_time", "sched_min_interval"),
)


class SlurmTables:
    """The kernel's state of a site, with nobody running or waiting.

    Attributes:
        requests: the jobs, with the QOS they get where they name none.
        loops: the kernel's `SlurmLoops`; ``limits`` are its `SlurmLimits`.
        own_meters: each job's meters; those of its first partition's QOS where it has several.
        node_number, part_number: by name.
        settings: the whole numbers of ``SchedulerParameters``; ``bf_window`` in seconds.
        never: why a job can never start, by its number.

    Raises:
        SpecError: a setting is no number, or a job names a partition that is not there.
    """

    def __init__(self, site: SlurmSite, requests: Sequence[SlurmRequest]) -> None:
        self.site, self.meters = site, Meters(site)
        replace = msgspec.structs.replace
        requests = [replace(one, qos=self.meters.qos_of(one)) for one in requests]
        self.requests = requests
        self.node_number = {node.name: at for at, node in enumerate(site.nodes)}
        self.part_number = {part.name: at for at, part in enumerate(site.partitions)}
        self.settings = scheduler_settings(site)
        self.preempting = Preempting(site)
        self.never: dict[int, str] = {}
        self.partitions = [self._partitions(job, r) for job, r in enumerate(requests)]
        self._masks: dict[tuple[Any, ...], int] = {}
        self._mask_rows: list[list[int]] = []
        self.arrays = {
            name: at for at, name in enumerate(dict.fromkeys(r.array for r in requests if r.array))
        }
        self.users = {name: at for at, name in enumerate(dict.fromkeys(r.user for r in requests))}
        self.holds = {hold.name: at for at, hold in enumerate(site.reservations)}
        self.nodes = self._nodes()
        self.jobs = self._jobs()
        self.loops = self._loops()

    def _partitions(self, job: int, request: SlurmRequest) -> list[SlurmPartition]:
        """Return the partitions a job may run in; notes why there are none."""
        names = request.partitions or (self.site.default_partition,)
        unknown = [name for name in names if name not in self.part_number]
        if unknown:
            raise SpecError.unknown("partition", unknown[0], self.part_number)
        found = [self.site.partitions[self.part_number[name]] for name in names]
        kept = [part for part in found if not self._bars(job, request, part)]
        if not kept:
            return []
        self.never.pop(job, None)
        reason = self.meters.never(request, kept[0])
        total = self.site.settings.licenses
        if any(count > total.get(name, 0) for name, count in request.licenses.items()):
            reason = "Licenses"
        if reason:
            self.never[job] = reason
        return kept

    def _bars(self, job: int, request: SlurmRequest, part: SlurmPartition) -> bool:
        """Return whether a partition does not take a job, and note why."""
        if (part.max_nodes is not None and request.min_nodes > part.max_nodes) or (
            request.min_nodes > len(part.nodes)
        ):
            is_config = request.min_nodes > len(part.nodes)
            self.never[job] = "PartitionConfig" if is_config else "PartitionNodeLimit"
        elif part.max_time is not None and (request.limit or 0) > part.max_time:
            self.never[job] = "PartitionTimeLimit"
        elif not part.is_up:
            self.never[job] = "PartitionDown"
        elif _excludes(request.account, part.allowed_accounts, part.denied_accounts):
            self.never[job] = "AccountNotAllowed"
        elif _excludes(request.qos, part.allowed_qos, part.denied_qos):
            self.never[job] = "QOSNotAllowed"
        else:
            return False
        return True

    def _nodes(self) -> Any:
        nodes = self.site.nodes
        return kernel.SlurmNodes(
            [node.cpus for node in nodes],
            [node.memory for node in nodes],
            [sum(node.gpus.values()) for node in nodes],
            [node.weight for node in nodes],
        )

    def limit(self, job: int) -> int:
        """Return a job's time limit, s, in whole minutes."""
        request, parts = self.requests[job], self.partitions[job]
        limit = request.limit
        if limit is None and parts:
            limit = parts[0].default_time or parts[0].max_time
        return -(-(limit or YEAR) // 60) * 60

    def _mask(self, request: SlurmRequest) -> int:
        """Return the number of the row of nodes a job may use; -1 = all."""
        key = (request.nodes, request.excluded, request.features, request.gpu_types)
        if not any(key):
            return -1
        if key not in self._masks:
            self._masks[key] = len(self._mask_rows)
            self._mask_rows.append(
                [
                    (not request.nodes or node.name in request.nodes)
                    and node.name not in request.excluded
                    and request.features <= node.features
                    and (not request.gpu_types or not request.gpu_types.isdisjoint(node.gpus))
                    for node in self.site.nodes
                ]
            )
        return self._masks[key]

    def _memory(self, job: int) -> tuple[int, int]:
        """Return the MB a job gets on each node, and for each processor; -1 = all there is."""
        request = self.requests[job]
        if request.memory is not None:
            return (request.memory or -1), 0
        if request.cpu_memory is not None:
            return 0, request.cpu_memory
        part = self.partitions[job][0] if self.partitions[job] else None
        for where in (part, self.site.settings):
            if where is not None and where.memory_per_cpu is not None:
                return 0, where.memory_per_cpu
            if where is not None and where.memory_per_node is not None:
                return (where.memory_per_node or -1), 0
        return -1, 0

    def _jobs(self) -> Any:
        requests, parts = self.requests, self.partitions
        memory = [self._memory(job) for job in range(len(requests))]
        columns = {
            "identity": [r.identity for r in requests],
            "submitted": [math.floor(r.submit) for r in requests],
            "min_nodes": [r.min_nodes for r in requests],
            "max_nodes": [r.max_nodes or ANY_NODES for r in requests],
            "cpus": [max(r.cpus, r.node_cpus * r.min_nodes) for r in requests],
            "node_cpus": [r.node_cpus for r in requests],
            "gpus": [r.gpus for r in requests],
            "node_gpus": [r.node_gpus for r in requests],
            "exclusive": [r.exclusive or any(p.exclusive for p in of)
                          for r, of in zip(requests, parts, strict=True)],
            "limit": [self.limit(job) for job in range(len(requests))],
            "array": [self.arrays.get(r.array, -1) for r in requests],
            "task": [r.task for r in requests],
            "mask": [self._mask(r) for r in requests],
            "hold": [self.holds.get(r.reservation, -1) for r in requests],
            "user": [self.users[r.user] for r in requests],
            "qos": [self._qos(r) for r in requests],
            "memory": [m for m, _ in memory],
            "cpu_memory": [m for _, m in memory],
        }  # fmt: skip
        first = [of[0] if of else self.site.partitions[0] for of in parts]
        metered = [self.meters.of(r, part) for r, part in zip(requests, first, strict=True)]
        self.own_meters = [[meter for meter, _ in own] for own in metered]
        return kernel.SlurmJobs(
            columns,
            [sorted(self.part_number[p.name] for p in of) for of in parts],
            self.own_meters,
            [[passed for _, passed in own] for own in metered],
        )

    def _qos(self, request: SlurmRequest) -> int:
        """Return the number of a job's QOS; of one that is not there, that of ``normal``."""
        numbers = self.preempting.qos_number
        return numbers.get(request.qos, numbers.get("normal", 0))

    def _loops(self) -> Any:
        site, count = self.site, len(self.site.nodes)
        select = site.settings.select
        jobs = self.jobs
        choice = kernel.SlurmChoice(
            jobs,
            count,
            {
                "least_loaded": [p.least_loaded or "CR_LLN" in select for p in site.partitions],
                "serial_at_end": "pack_serial_at_end" in site.settings.scheduler,
                "counts_memory": any("MEMORY" in word for word in select),
                "switches": self._switches(),
            },
        )
        self.stays = kernel.SlurmStays(len(self.requests))
        meters, safe = self.meters, "safe" in site.settings.enforce
        self.limits = kernel.SlurmLimits(
            jobs, self.stays, meters.limits, meters.kinds, count, safe=safe
        )
        settings = self.settings | {
            "assoc_limit_stop": "assoc_limit_stop" in site.settings.scheduler,
            "kill_wait": site.settings.kill_wait,
            "over_time_limit": site.settings.over_time_limit or 0,
        }
        by_limit = sorted(self.requests, key=lambda r: r.array_limit, reverse=True)
        least = {r.array: r.array_limit for r in by_limit if r.array_limit > 0}
        tables = {
            "part_nodes": [[n.name in part.nodes for n in site.nodes] for part in site.partitions],
            "part_tier": [part.tier for part in site.partitions],
            "masks": self._mask_rows,
            "array_limit": [least.get(name, 0) for name in self.arrays],
            **self.hold_tables(site.reservations),
        }
        total = site.settings.licenses
        number = {name: at for at, name in enumerate(total)}
        licenses = kernel.SlurmLicenses(
            list(total.values()),
            [
                [(number[name], count) for name, count in r.licenses.items() if name in number]
                for r in self.requests
            ],
        )
        rules = self.preempting.rules
        victims = kernel.SlurmVictims(self.nodes, self.stays, choice, rules)
        return kernel.SlurmLoops(victims, self.limits, licenses, tables, settings)

    def hold_tables(self, reservations: Sequence[SlurmReservation]) -> dict[str, Any]:
        """Return advance reservations as the kernel takes them."""
        nodes, parts = self.site.nodes, self.site.partitions
        return {
            "hold_nodes": [[n.name in hold.nodes for n in nodes] for hold in reservations],
            "hold_start": [int(hold.start) for hold in reservations],
            "hold_end": [int(hold.end) for hold in reservations],
            "hold_covers": [[_covers(hold, part) for part in parts] for hold in reservations],
        }

    def _switches(self) -> tuple[list[int], list[list[int]]]:
        """Return the level of each switch, and its nodes."""
        switches = {switch.name: switch for switch in self.site.switches}

        def level(name: str) -> int:
            below = switches[name].switches
            return 1 + max(level(other) for other in below) if below else 0

        def nodes(name: str) -> set[str]:
            switch = switches[name]
            return set(switch.nodes).union(*(nodes(other) for other in switch.switches))

        rows = [[node.name in nodes(name) for node in self.site.nodes] for name in switches]
        return [level(name) for name in switches], np.array(rows, dtype=int).tolist()


def _excludes(name: str, allowed: frozenset[str] | None, denied: frozenset[str]) -> bool:
    """Return whether a partition takes no jobs of an account or QOS; one not known is not asked."""
    return bool(name) and (name in denied if allowed is None else name not in allowed)


def _covers(hold: SlurmReservation, part: SlurmPartition) -> bool:
    """Return whether a reservation closes a whole partition, so that nobody is even tried."""
    return bool({"MAINT", "ALL_NODES"} & hold.flags) and set(part.nodes) <= set(hold.nodes)


def not_modelled(site: SlurmSite) -> list[str]:
    """Return the words of ``SchedulerParameters`` that would decide something and do not here."""
    known = {*_DEFAULTS, *_WORDS, *_OF_NO_TIME}
    known |= {name.replace("_part", "_partition") for name in _DEFAULTS}
    return sorted(set(site.settings.scheduler) - known)


def scheduler_settings(site: SlurmSite) -> dict[str, int]:
    """Return the whole numbers of ``SchedulerParameters``; ``bf_window`` in seconds.

    Raises:
        SpecError: one is no whole number.
    """
    found = dict(_DEFAULTS)
    given = site.settings.scheduler
    if given.get("bf_window_linear"):
        found["bf_window_linear"] = 0
    for name in found:
        text = given.get(name, given.get(name.replace("_part", "_partition"), ""))
        if text:
            if not text.isascii() or not text.isdigit() or not int(text[:10]) < _MOST:
                message = f"found {quote(text)}; expected a whole number below {_MOST:,}."
                raise SpecError(f"SchedulerParameters {name}", message)
            found[name] = int(text)
    found["bf_interval"] = max(found["bf_interval"], 1)
    found["bf_window"] *= 60
    found["bf_resolution"] = max(found["bf_resolution"], 1)
    return found
