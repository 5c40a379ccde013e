"""Limits of QOS and associations as the kernel's meters, and the reasons they give.

The order in which slurmctld looks: the partition's QOS, the job's (the other way round where that
has the flag ``OverPartQOS``), then the association of the user, the account's, and those above it.
Of limits of one kind on one thing the first QOS that states one decides: what the other QOS, or
associations, state of it does not hold. Limits on a user's jobs, or on each job, are an
association's own, or else those of the nearest one above it that has some
(https://slurm.schedmd.com/resource_limits.html, and ``acct_policy.c``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.slurm.requests import SlurmRequest
    from windtunnel.site.slurm import (
        SlurmAssociation,
        SlurmPartition,
        SlurmQos,
        SlurmSite,
    )

T = TypeVar("T")
#: What is counted, and limited; memory in MB.
TRES = ("cpu", "mem", "node", "gpu")
#: The kernel's columns: those, jobs, minutes of each to come, and minutes of each that were used:
#: `windtunnel.kernel.slurm_limits`.
JOBS, RUN_MINUTES, MINUTES = 4, 5, 9
COLUMNS = 13
#: Reasons by kind of meter and column.
GROUP_QOS, USER_QOS, ACCOUNT_QOS, GROUP_ASSOC, USER_ASSOC = range(5)
_NO_MINUTES = ("",) * 8
_REASONS = (
    ("QOSGrpCpuLimit", "QOSGrpMemLimit", "QOSGrpNodeLimit", "QOSGrpGRES", "QOSGrpJobsLimit",
     "QOSGrpCPURunMinutesLimit", "QOSGrpMemoryRunMinutes", "QOSGrpNodeRunMinutes",
     "QOSGrpGRESRunMinutes", "QOSGrpCPUMinutesLimit", "QOSGrpMemoryMinutes", "QOSGrpNodeMinutes",
     "QOSGrpGRESMinutes"),
    ("QOSMaxCpuPerUserLimit", "QOSMaxMemoryPerUser", "QOSMaxNodePerUserLimit",
     "QOSMaxGRESPerUser", "QOSMaxJobsPerUserLimit", *_NO_MINUTES),
    ("MaxCpuPerAccount", "MaxMemoryPerAccount", "MaxNodePerAccount", "MaxGRESPerAccount",
     "QOSJobLimit", *_NO_MINUTES),
    ("AssocGrpCpuLimit", "AssocGrpMemLimit", "AssocGrpNodeLimit", "AssocGrpGRES",
     "AssocGrpJobsLimit", "AssocGrpCPURunMinutesLimit", "AssocGrpMemRunMinutes",
     "AssocGrpNodeRunMinutes", "AssocGrpGRESRunMinutes", "AssocGrpCPUMinutesLimit",
     "AssocGrpMemMinutes", "AssocGrpNodeMinutes", "AssocGrpGRESMinutes"),
    ("", "", "", "", "AssocMaxJobsLimit", *_NO_MINUTES),
)  # fmt: skip
#: Reasons of the kernel's numbers below `FIRST_LIMIT`.
_PLAIN = (
    "None", "Priority", "Resources",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
    "ReqNodeNotAvail, Reserved for maintenance", "JobArrayTaskLimit", "Reservation",
    "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "Licenses",
)  # fmt: skip
FIRST_LIMIT = 16
#: Reasons of limits on each job, by what states them.
_OF_A_JOB = {
    name: {"cpu": "MaxCpuPerJobLimit", "mem": f"Max{memory}PerJob", "node": "MaxNodePerJobLimit",
           "gpu": "MaxGRESPerJob"}
    for name, memory in (("QOS", "Memory"), ("Assoc", "Mem"))
}  # fmt: skip
_MINUTE = 60


def reason_text(number: int) -> str:
    """Return a reason as ``squeue`` shows it."""
    if number < FIRST_LIMIT:
        return _PLAIN[number]
    kind, column = divmod(number - FIRST_LIMIT, COLUMNS)
    return _REASONS[kind][column]


class Meters:
    """The meters of a site, made as jobs turn up that count against them.

    Attributes:
        limits: a row of `COLUMNS` each; -1 = no limit.
        kinds: what each is, as the rows of reasons.
        is_kept: whether what is used never decays.
    """

    def __init__(self, site: SlurmSite) -> None:
        enforce = site.settings.enforce
        self.is_on = bool({"limits", "safe"} & enforce)
        self.qos = {qos.name: qos for qos in site.qos}
        self.associations = {(a.account, a.user): a for a in site.associations}
        self.limits: list[list[int]] = []
        self.kinds: list[int] = []
        self.is_kept: list[bool] = []
        #: Which meter counts (kind, QOS or account, user).
        self._known: dict[tuple[int, str, str], int] = {}

    def of(self, request: SlurmRequest, partition: SlurmPartition) -> list[tuple[int, int]]:
        """Return the meters a job counts against, in the order in which they are looked at.

        Returns:
            Each with the columns, as bits, whose limit was stated before and does not hold.
        """
        if not self.is_on:
            return []
        found: list[tuple[int, int]] = []
        stated = [0] * len(_REASONS)
        for qos in self._own_qos(request, partition):
            for kind, who, row in _of_qos(qos, request):
                kept = "NoDecay" in qos.flags
                if max(row) >= 0:
                    meter = self._meter((kind, qos.name, who), row, is_kept=kept)
                    found.append((meter, stated[kind]))
                stated[kind] |= sum(1 << at for at, limit in enumerate(row) if limit >= 0)
        chain = self.chain(request)
        for association in chain:
            key = association.account, association.user
            b = association.bounds
            row = _row(b.group, b.group_jobs, b.group_run_minutes, b.group_minutes)
            if max(row) >= 0:
                found.append((self._meter((GROUP_ASSOC, *key), row), stated[GROUP_QOS]))
            jobs = _first(one.bounds.jobs for one in chain) if association is chain[0] else None
            if jobs is not None:
                meter = self._meter((USER_ASSOC, *key), _row({}, jobs))
                found.append((meter, stated[USER_QOS] | stated[ACCOUNT_QOS]))
        return found

    def chain(self, request: SlurmRequest) -> list[SlurmAssociation]:
        """Return a job's association and those above it."""
        found = []
        at = self.associations.get((request.account, request.user))
        while at is not None:
            found.append(at)
            above = at.account if at.user else at.parent
            at = self.associations.get((above, "")) if above else None
        return found

    def qos_of(self, request: SlurmRequest) -> str:
        """Return a job's QOS: its own, its association's, or ``normal``; "" = none of a site."""
        its = _first(one.default_qos or None for one in self.chain(request))
        name = request.qos or its or "normal"
        return name if request.qos or name in self.qos else ""

    def _own_qos(self, request: SlurmRequest, partition: SlurmPartition) -> list[SlurmQos]:
        """Return the QOS whose limits hold for a job, in the order in which they are looked at."""
        own, its = self.qos.get(request.qos), self.qos.get(partition.qos)
        order = [own, its] if own and "OverPartQOS" in own.flags else [its, own]
        return list({qos.name: qos for qos in order if qos is not None}.values())

    def _meter(self, name: tuple[int, str, str], row: list[int], *, is_kept: bool = False) -> int:
        if name not in self._known:
            self._known[name] = len(self.limits)
            self.limits.append(row)
            self.kinds.append(name[0])
            self.is_kept.append(is_kept)
        return self._known[name]

    def never(self, request: SlurmRequest, partition: SlurmPartition) -> str:
        """Return why a job waits for ever by limits on each single job, "" if none does."""
        if not self.is_on:
            return ""
        cpus = max(request.cpus, request.node_cpus * request.min_nodes)
        memory = (request.memory or 0) * request.min_nodes or (request.cpu_memory or 0) * cpus
        gpus = max(request.gpus, request.node_gpus * request.min_nodes)
        asked = dict(zip(TRES, (cpus, memory, request.min_nodes, gpus), strict=True))
        stating = [(qos.bounds, "QOS") for qos in self._own_qos(request, partition)]
        stating += [(one.bounds, "Assoc") for one in self.chain(request)]
        for tres, count in asked.items():
            limits = ((bounds.job[tres], name) for bounds, name in stating if tres in bounds.job)
            limit, name = next(limits, (count, ""))
            if count > limit:
                return name + _OF_A_JOB[name][tres]
        walls = ((of.wall, name) for of, name in stating if of.wall is not None)
        wall, name = next(walls, (None, ""))
        if wall is not None and (request.limit or partition.max_time or 0) > wall:
            return name + "MaxWallDurationPerJobLimit"
        return ""


def _of_qos(qos: SlurmQos, request: SlurmRequest) -> list[tuple[int, str, list[int]]]:
    """Return the kinds of meters of a QOS, whose each is for a job, and its limits."""
    b = qos.bounds
    return [
        (GROUP_QOS, "", _row(b.group, b.group_jobs, b.group_run_minutes, b.group_minutes)),
        (ACCOUNT_QOS, request.account, _row(b.account, b.account_jobs)),
        (USER_QOS, request.user, _row(b.user, b.user_jobs)),
    ]


def _first(stated: Iterable[T | None]) -> T | None:
    """Return the first of some values that is there."""
    return next((value for value in stated if value is not None), None)


def _row(
    tres: dict[str, int],
    jobs: int | None,
    run_minutes: dict[str, int] | None = None,
    minutes: dict[str, int] | None = None,
) -> list[int]:
    """Return a meter's limits, a column each; minutes in seconds."""
    most = [tres.get(name, -1) for name in TRES]
    seconds = [
        _MINUTE * part[name] if name in part else -1
        for part in (run_minutes or {}, minutes or {})
        for name in TRES
    ]
    return [*most, -1 if jobs is None else jobs, *seconds]
