"""Who may preempt whom at a site: its QOS or its partitions' tiers, as the kernel's tables.

slurm.conf(5): ``PreemptType``, ``PreemptMode``, ``PreemptParameters``, ``PreemptExemptTime``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windtunnel.site.slurm import SlurmPartition, SlurmQos, SlurmSettings, SlurmSite

#: What becomes of those who must go; jobs that are to be suspended are left alone.
CANCEL, REQUEUE = "CANCEL", "REQUEUE"
#: Names of the words of ``PreemptParameters``, and of those of ``SchedulerParameters`` before.
_OLD = "preempt_"


class Preempting:
    """The rules of a site, by its QOS or partitions.

    Attributes:
        by_qos: kinds are QOS, and not partitions.
        modes: what becomes of the jobs of each kind: CANCEL, REQUEUE, or "" = nothing.
        rules: as `windtunnel.kernel.SlurmVictims` takes them.
    """

    def __init__(self, site: SlurmSite) -> None:
        settings = site.settings
        self.by_qos = settings.preempt == "qos"
        self.qos_number = {qos.name: at for at, qos in enumerate(site.qos)}
        kinds: tuple[Any, ...] = site.qos if self.by_qos else site.partitions
        self.modes = [_mode(kind.preempt_mode, settings) for kind in kinds]
        given = settings.preempt_parameters | {
            word.removeprefix(_OLD): value
            for word, value in settings.scheduler.items()
            if word.startswith(_OLD)
        }
        count = given.get("reorder_count", "")
        self.rules: dict[str, Any] = {
            "rank": [[int(_outranks(a, b, settings)) for b in kinds] for a in kinds],
            "worth": [min(k.priority if self.by_qos else k.tier, 0xFFFF) for k in kinds],
            "may_go": [bool(mode) for mode in self.modes],
            "exempt": [_exempt(kind, settings) for kind in kinds],
            "grace": [kind.grace for kind in kinds],
            "by_qos": self.by_qos,
            "youngest_first": "youngest_first" in given,
            "reorder_count": int(count) if count.isdecimal() else 1,
            "patience": settings.kill_wait + settings.message_timeout,
        }

    def mode_of(self, qos: int, part: int) -> str:
        """Return what becomes of a running job of a QOS in a partition that is preempted."""
        return self.modes[qos if self.by_qos else part]

    def suspends(self) -> bool:
        """Return whether jobs would be suspended here, so that they are left alone."""
        return bool(self.rules["rank"]) and any(
            any(row[at] for row in self.rules["rank"]) and mode == ""
            for at, mode in enumerate(self.modes)
        )


def _outranks(one: Any, other: Any, settings: SlurmSettings) -> bool:
    """Return whether jobs of a QOS or partition may preempt those of another."""
    if settings.preempt == "qos":
        preempting: SlurmQos = one
        return str(other.name) in preempting.preempts
    if settings.preempt == "partition_prio":
        tier: SlurmPartition = one
        return tier.tier > int(other.tier)
    return False


def _mode(own: str, settings: SlurmSettings) -> str:
    """Return what becomes of the preempted jobs of a QOS or partition."""
    words = set((own or settings.preempt_mode).split(",")) - {"GANG", "WITHIN"}
    if REQUEUE in words:
        return REQUEUE if settings.requeues else CANCEL
    return CANCEL if CANCEL in words else ""


def _exempt(kind: Any, settings: SlurmSettings) -> int:
    own = getattr(kind, "exempt", None)
    return settings.preempt_exempt if own is None else int(own)
