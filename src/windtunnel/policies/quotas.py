"""Quotas of virtual clusters, as data: who owns how many GPUs, and who may borrow from whom.

The terms are Kueue's (kubernetes-sigs/kueue, "ClusterQueue", "Cohort"): a *queue* has a nominal
quota; queues of one *cohort* lend each other what they do not use; a borrowing limit caps what a
queue may take above its nominal quota, a lending limit what it may give away. Here a queue is a
virtual cluster, and its resource is GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from windtunnel.checked import checked_number
from windtunnel.cluster.gpu_types import spelling
from windtunnel.errors import SpecError, quote, unused_names
from windtunnel.toml_file import read_toml, struct_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from windtunnel.cluster.spec import ClusterSpec

#: A number of GPUs, or one a GPU type.
Gpus = float | dict[str, float]
#: The queue of every virtual cluster that has none of its own.
REST = "*"
#: What jobs without a virtual cluster are in.
NO_VC = "(none)"
#: The flavor of quotas that do not tell GPU types apart.
ANY_TYPE = ""
#: The cohort of queues that were not written down by hand.
ONE_COHORT = "all"
#: Most GPUs of one number: sums of their millionths over thousands of queues stay below 2^63.
MOST_GPUS = 1_000_000_000


class QueueQuota(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The quota of one virtual cluster. Kueue's own spelling (``nominalQuota``) is read, too.

    Attributes:
        vc: the virtual cluster; ``*`` = one queue for all that are not named; ``(none)`` = jobs
            without one.
        nominal_quota: GPUs it owns; by GPU type, in the order in which types are tried.
        borrowing_limit: GPUs it may use above that; None = as many as its cohort lends.
        lending_limit: GPUs of its own that others may use; None = all.
        cohort: whom it shares with; None = nobody.
        queueing_strategy: ``StrictFIFO`` (its first job holds up the others) or
            ``BestEffortFIFO``; None = the policy's.
        reclaim_within_cohort: which jobs of borrowing queues give way to a job within its nominal
            quota: ``Never``, ``LowerPriority`` or ``Any``; None = the policy's.
        within_cluster_queue: which jobs of its own give way: ``Never`` or ``LowerPriority``; None =
            the policy's.
        weight: its weight in fair sharing.
    """

    vc: str
    nominal_quota: Gpus
    borrowing_limit: Gpus | None = None
    lending_limit: Gpus | None = None
    cohort: str | None = None
    queueing_strategy: Literal["StrictFIFO", "BestEffortFIFO"] | None = None
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] | None = None
    within_cluster_queue: Literal["Never", "LowerPriority"] | None = None
    weight: float = 1.0

    @property
    def flavors(self) -> tuple[str, ...]:
        """The GPU types it has quota of, in order; `ANY_TYPE` alone if it tells none apart."""
        return tuple(self.nominal_quota) if isinstance(self.nominal_quota, dict) else (ANY_TYPE,)


class Quotas(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The quotas of a cluster.

    Attributes:
        queues: one a virtual cluster; the order breaks ties between them.

    >>> Quotas((QueueQuota(vc="a", nominal_quota=8), QueueQuota(vc="b", nominal_quota=4))).total
    12.0
    """

    queues: tuple[QueueQuota, ...]

    def __post_init__(self) -> None:
        """Check the queues against each other.

        Raises:
            SpecError: none, one twice, a number below 0, or quotas by type beside quotas that tell
                no types apart.
        """
        names = [queue.vc for queue in self.queues]
        if not names:
            raise SpecError("$.queues", "expected at least one queue.")
        for index, queue in enumerate(self.queues):
            path = f"$.queues[{index}]"
            if queue.vc in names[:index]:
                raise SpecError(f"{path}.vc", f"found {quote(queue.vc)} twice; name each once.")
            _check_numbers(path, queue)
            if isinstance(queue.nominal_quota, dict) != isinstance(
                self.queues[0].nominal_quota, dict
            ):
                message = "some queues have quota by GPU type and some do not; expected one kind."
                raise SpecError(f"{path}.nominal_quota", message)

    @classmethod
    def from_toml(cls, path: str | Path) -> Quotas:
        """Read quotas from a TOML file: one ``[[queues]]`` table a virtual cluster.

        Raises:
            SpecError: the file is missing, not TOML, or breaks the rules; names the key.
        """
        return cls.from_mapping(read_toml(path), source=str(path))

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], *, source: str = "$") -> Quotas:
        """Build quotas from plain data: ``{"queues": [...]}``, or virtual cluster -> GPUs.

        The short form puts all in one cohort without limits.

        Raises:
            SpecError: an unknown key (the nearest is suggested), a missing key or a wrong type.
        """
        if "queues" not in raw and raw and all(_is_gpus(value) for value in raw.values()):
            queues = [
                {"vc": vc, "nominal_quota": gpus, "cohort": ONE_COHORT} for vc, gpus in raw.items()
            ]
            raw = {"queues": queues}
        return struct_of(cls, _with_our_keys(raw, source), source)

    def to_mapping(self) -> dict[str, Any]:
        """Return the quotas as plain data that `from_mapping` reads back."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    @property
    def total(self) -> float:
        """GPUs of all nominal quotas."""
        return float(sum(sum(by_type(q.nominal_quota).values()) for q in self.queues))

    def in_types_of(self, cluster: ClusterSpec | None) -> Quotas:
        """Return the same quotas, GPU types spelt as a cluster's, which may have other names.

        Types that the cluster does not have stay as they are.

        Raises:
            SpecError: a queue has two numbers of one type.
        """
        known = {} if cluster is None else spelling(cluster.gpu_types, cluster.aliases)
        queues = []
        for index, queue in enumerate(self.queues):
            changed: dict[str, Any] = {}
            for name in ("nominal_quota", "borrowing_limit", "lending_limit"):
                given = getattr(queue, name)
                if isinstance(given, dict):
                    changed[name] = {known.get(kind.lower(), kind): n for kind, n in given.items()}
                    if len(changed[name]) < len(given):
                        message = f"found {quote(list(given))}; two of them are one GPU type."
                        raise SpecError(f"$.queues[{index}].{name}", message)
            queues.append(msgspec.structs.replace(queue, **changed))
        return Quotas(tuple(queues))

    def alone(self) -> Quotas:
        """Return the same nominal quotas with no borrowing at all."""
        queues = (
            msgspec.structs.replace(queue, cohort=None, borrowing_limit=None, lending_limit=None)
            for queue in self.queues
        )
        return Quotas(tuple(queues))


def by_type(gpus: Gpus) -> dict[str, float]:
    """Return numbers of GPUs by type, whichever way they were given."""
    return gpus if isinstance(gpus, dict) else {ANY_TYPE: gpus}


def unused_vcs(named: Iterable[str], vcs: Iterable[str | None]) -> list[str]:
    """Return what to note of quotas of virtual clusters that no job is in.

    Args:
        named: the queues' virtual clusters; `REST` and `NO_VC` are no names.
        vcs: those of all jobs; None = a job without one.
    """
    return unused_names("The quotas name", "vc", set(named) - {REST, NO_VC}, vcs, where="the trace")


def proportional(
    usage: Mapping[str, float], least: Mapping[str, float], num_gpus: float
) -> tuple[Quotas, str]:
    """Return quotas in proportion to past use, all in one cohort without limits.

    A virtual cluster whose share is smaller than its largest job gets that job's GPUs, and the
    others share the rest. Shares are rounded to whole GPUs by largest remainders. Where nobody used
    anything, all count alike.

    Args:
        usage: GPU-seconds of each virtual cluster.
        least: GPUs of its largest job.
        num_gpus: GPUs to give out.

    Returns:
        The quotas, by name, and a sentence that says how they were made.
    """
    if not any(usage.values()):
        usage = dict.fromkeys(usage, 1.0)
    floor = {vc: int(np.ceil(least[vc])) for vc in sorted(usage)}
    raised: set[str] = set()
    while True:
        left = max(num_gpus - sum(floor[vc] for vc in raised), 0.0)
        total = sum(usage[vc] for vc in floor if vc not in raised)
        shares = {
            vc: float(floor[vc]) if vc in raised else left * (usage[vc] / total if total else 0.0)
            for vc in floor
        }
        short = {vc for vc, share in shares.items() if share < floor[vc]}
        if not short:
            break
        raised |= short
    whole = _whole(shares)
    queues = tuple(
        QueueQuota(vc=vc, nominal_quota=float(gpus), cohort=ONE_COHORT)
        for vc, gpus in whole.items()
    )
    note = (
        f"No quotas were given: each of {len(whole):,} virtual clusters was given GPUs in "
        "proportion to the GPU time of its jobs in the trace, and at least its largest job's."
    )
    over = sum(whole.values()) - num_gpus
    if over > 0:
        note += f" That promises {over:g} GPUs more than there are."
    return Quotas(queues), note


def _whole(shares: Mapping[str, float]) -> dict[str, int]:
    """Return shares as whole numbers that add up to the same whole number (largest remainders)."""
    whole = {vc: int(np.floor(share + 1e-9)) for vc, share in shares.items()}
    rest = round(sum(shares.values()) - sum(whole.values()))
    order = sorted(shares, key=lambda vc: (whole[vc] - shares[vc], vc))
    for vc in order[: max(rest, 0)]:
        whole[vc] += 1
    return whole


def _check_numbers(path: str, queue: QueueQuota) -> None:
    for name in ("nominal_quota", "borrowing_limit", "lending_limit"):
        value = getattr(queue, name)
        if value is None:
            continue
        if isinstance(value, dict) and (not value or set(value) - set(queue.flavors)):
            message = f"found {quote(list(value))}; expected GPU types that nominal_quota has."
            raise SpecError(f"{path}.{name}", message)
        for gpus in by_type(value).values():
            checked_number(
                f"{path}.{name}", gpus, f"0 to {MOST_GPUS:,} GPUs", least=0, most=MOST_GPUS
            )
        if not isinstance(value, dict) and isinstance(queue.nominal_quota, dict):
            message = "expected a number for each GPU type, as in nominal_quota."
            raise SpecError(f"{path}.{name}", message)
    checked_number(f"{path}.weight", queue.weight, "a number above 0", above=0)
    if queue.cohort is None and (queue.borrowing_limit or queue.lending_limit):
        message = "a queue without a cohort neither borrows nor lends; name its cohort."
        raise SpecError(f"{path}.cohort", message)


def _is_gpus(value: Any) -> bool:
    numbers = value.values() if isinstance(value, dict) else (value,)
    return all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)


def _with_our_keys(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the data with Kueue's spelling of keys turned into ours."""
    queues = raw.get("queues", [])
    if not isinstance(queues, list | tuple):
        return dict(raw)
    known: dict[Any, str] = {_camel(name): name for name in QueueQuota.__struct_fields__}
    renamed = []
    for index, queue in enumerate(queues):
        if not isinstance(queue, dict):
            return dict(raw)
        ours = {known.get(key, key): value for key, value in queue.items()}
        if len(ours) < len(queue):
            raise SpecError(f"{source}: $.queues[{index}]", "a key is given in both spellings.")
        renamed.append(ours)
    return {**raw, "queues": renamed}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
