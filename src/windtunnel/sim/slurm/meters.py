"""Limits of QOS and associations as the kernel's meters, and the reasons they give.

The order in which slurmctld looks: the job's QOS, the partition's, then the association of the
user, the account's, and those above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.sim.slurm.requests import SlurmRequest
    from windtunnel.site.slurm import (
        SlurmAssociation,
        SlurmBounds,
        SlurmPartition,
        SlurmQos,
        SlurmSite,
    )

#: The kernel's columns, in order: `windtunnel.kernel.slurm_limits`.
COLUMNS = ("Cpu", "Mem", "Node", "GRES", "Jobs", "CPURunMinutes", "CPUMinutes")
RUN_MINUTES, MINUTES = 5, 6
#: Reasons by kind of meter and column.
GROUP_QOS, USER_QOS, ACCOUNT_QOS, GROUP_ASSOC, USER_ASSOC = range(5)
_REASONS = (
    ("QOSGrpCpuLimit", "QOSGrpMemLimit", "QOSGrpNodeLimit", "QOSGrpGRES", "QOSGrpJobsLimit",
     "QOSGrpCPURunMinutesLimit", "QOSGrpCPUMinutesLimit"),
    ("QOSMaxCpuPerUserLimit", "QOSMaxMemoryPerUser", "QOSMaxNodePerUserLimit",
     "QOSMaxGRESPerUser", "QOSMaxJobsPerUserLimit", "", ""),
    ("MaxCpuPerAccount", "MaxMemoryPerAccount", "MaxNodePerAccount", "MaxGRESPerAccount",
     "QOSJobLimit", "", ""),
    ("AssocGrpCpuLimit", "AssocGrpMemLimit", "AssocGrpNodeLimit", "AssocGrpGRES",
     "AssocGrpJobsLimit", "AssocGrpCPURunMinutesLimit", "AssocGrpCPUMinutesLimit"),
    ("", "", "", "", "AssocMaxJobsLimit", "", ""),
)  # fmt: skip
#: Reasons of the kernel's numbers below `FIRST_LIMIT`.
_PLAIN = (
    "None", "Priority", "Resources",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
    "ReqNodeNotAvail, Reserved for maintenance", "JobArrayTaskLimit", "Reservation",
    "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "Licenses",
)  # fmt: skip
FIRST_LIMIT = 16
_TRES = ("cpu", "mem", "node", "gpu")
_MINUTE = 60


def reason_text(number: int) -> str:
    """Return a reason as ``squeue`` shows it."""
    if number < FIRST_LIMIT:
        return _PLAIN[number]
    kind, column = divmod(number - FIRST_LIMIT, len(COLUMNS))
    return _REASONS[kind][column]


class Meters:
    """The meters of a site, made as jobs turn up that count against them.

    Attributes:
        limits: a row each, by `COLUMNS`; -1 = no limit.
        kinds: what each is, as the rows of reasons.
        is_kept: whether what is used never decays.
    """

    def __init__(self, site: SlurmSite) -> None:
        enforce = site.settings.enforce
        self.is_on = bool({"limits", "safe"} & enforce)
        self.qos = {qos.name: qos for qos in site.qos}
        self.partitions = {partition.name: partition for partition in site.partitions}
        self.associations = {(a.account, a.user): a for a in site.associations}
        self.limits: list[list[int]] = []
        self.kinds: list[int] = []
        self.is_kept: list[bool] = []
        #: Which meter counts (kind, QOS or account, user).
        self._known: dict[tuple[int, str, str], int] = {}

    def of(self, request: SlurmRequest, partition: SlurmPartition) -> list[int]:
        """Return the meters a job counts against, in the order in which they are looked at."""
        if not self.is_on:
            return []
        found: list[int] = []
        own, its = self.qos.get(request.qos), self.qos.get(partition.qos)
        order = [own, its] if own and "OverPartQOS" in own.flags else [its, own]
        for qos in dict.fromkeys(qos.name for qos in order if qos is not None):
            found += self._of_qos(self.qos[qos], request)
        for association in self.chain(request):
            found += self._of_association(association)
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

    def _of_qos(self, qos: SlurmQos, request: SlurmRequest) -> list[int]:
        b = qos.bounds
        rows = [
            (GROUP_QOS, "", _row(b.group, b.group_jobs, b.group_run_minutes, b.group_minutes)),
            (ACCOUNT_QOS, request.account, _row(b.account, b.account_jobs)),
            (USER_QOS, request.user, _row(b.user, b.user_jobs)),
        ]
        kept = "NoDecay" in qos.flags
        return [
            self._meter((kind, qos.name, who), row, is_kept=kept)
            for kind, who, row in rows
            if max(row) >= 0
        ]

    def _of_association(self, association: SlurmAssociation) -> list[int]:
        b = association.bounds
        rows = [
            (GROUP_ASSOC, _row(b.group, b.group_jobs, b.group_run_minutes, b.group_minutes)),
            (USER_ASSOC, _row({}, b.jobs)),
        ]
        key = association.account, association.user
        return [self._meter((kind, *key), row) for kind, row in rows if max(row) >= 0]

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
        asked = {
            "cpu": cpus,
            "node": request.min_nodes,
            "gpu": max(request.gpus, request.node_gpus * request.min_nodes),
        }
        own = self.qos.get(request.qos)
        for bounds, name in [
            *([(own.bounds, "QOS")] if own else []),
            *((a.bounds, "Assoc") for a in self.chain(request)),
        ]:
            reason = _over(bounds, name, asked, request.limit or partition.max_time or 0)
            if reason:
                return reason
        return ""


def _over(bounds: SlurmBounds, name: str, asked: dict[str, int], limit: int) -> str:
    words = {"cpu": "MaxCpuPerJobLimit", "node": "MaxNodePerJobLimit", "gpu": "MaxGRESPerJob"}
    for tres, count in asked.items():
        if tres in bounds.job and count > bounds.job[tres]:
            return name + words[tres]
    if bounds.wall is not None and limit > bounds.wall:
        return name + "MaxWallDurationPerJobLimit"
    return ""


def _row(
    tres: dict[str, int],
    jobs: int | None,
    run_minutes: dict[str, int] | None = None,
    minutes: dict[str, int] | None = None,
) -> list[int]:
    """Return a meter's limits by `COLUMNS`."""
    seconds = [_MINUTE * (part or {})["cpu"] if "cpu" in (part or {}) else -1
               for part in (run_minutes, minutes)]  # fmt: skip
    return [*(tres.get(name, -1) for name in _TRES), -1 if jobs is None else jobs, *seconds]
