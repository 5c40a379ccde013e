"""What do the GPU hours cost, and who pays? Allocated and idle hours that add up to the bill.

The bill is what all GPUs of the cluster cost over the trace's span (first submission to last end),
used or not. Jobs are charged for the GPU time that they held; what nobody held is a line of its
own (opencost/opencost#3900: cost by allocation must add up to the bill).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa

from windtunnel.characterize.recorded import Recorded
from windtunnel.checked import checked_choice
from windtunnel.cluster.gpu_types import named_as, spelling, spelt, with_types_of
from windtunnel.errors import SpecError
from windtunnel.toml_file import read_toml, struct_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from windtunnel.cluster.spec import ClusterSpec

#: Properties by which cost is summed.
COST_BY: tuple[str, ...] = ("user", "vc")
#: What GPUs without a type are called.
ANY_TYPE = "(any)"
_HOUR = 3600.0
#: No GPU hour costs as much, in any currency.
MOST_PRICE = 1e12


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a GPU costs an hour.

    Attributes:
        gpus: GPU type -> price.
        default: price of every other GPU; None = there is no other.
        currency: what it is paid in.
    """

    gpus: dict[str, float] = {}
    default: float | None = None
    currency: str = ""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            SpecError: there is no price, or one is no number from 0 to 1e12.
        """
        if not self.gpus and self.default is None:
            raise SpecError("prices", "no price; expected 'default', or a type in 'gpus'.")
        for name, price in (*self.gpus.items(), ("default", self.default)):
            if price is not None and not 0 <= price <= MOST_PRICE:
                expected = f"expected a price of an hour, from 0 to {MOST_PRICE:g}."
                raise SpecError(f"prices.{name}", f"found {price:g}; {expected}")

    @classmethod
    def from_toml(cls, path: str | Path) -> Prices:
        """Read prices from a TOML file: ``default``, ``currency`` and the table ``[gpus]``.

        Raises:
            SpecError: the file is missing, not TOML, or breaks the rules; names the key.
        """
        return struct_of(cls, read_toml(path), str(path))

    def named_as(self, types: Sequence[str], aliases: Mapping[str, str]) -> Prices:
        """Return the prices under a cluster's spelling of its GPU types.

        Args:
            types: those that there are; empty = none are distinguished.
            aliases: other names of them.

        Raises:
            SpecError: a type with a price does not occur, or has two.
        """
        gpus = named_as("prices.gpus", self.gpus, types, aliases)
        return msgspec.structs.replace(self, gpus=gpus)

    def of(self, gpu_type: str | None) -> float:
        """Return the price of a GPU hour.

        Raises:
            SpecError: neither the type nor ``default`` has a price; the nearest is suggested.
        """
        named = "" if gpu_type is None else spelt(gpu_type, spelling(self.gpus))
        price = self.gpus.get(named, self.default)
        if price is None:
            if gpu_type is None:
                raise SpecError("prices", "GPUs without a type; expected a price 'default'.")
            raise SpecError.unknown("prices.gpus", gpu_type, (*self.gpus, "default"))
        return price


@dataclass(frozen=True)
class Bill:
    """The bill of a trace.

    Attributes:
        recorded: the jobs' history.
        cluster: whose GPUs are paid for; None = not known: as many as were ever held at once.
        prices: what a GPU hour costs.
    """

    recorded: Recorded
    cluster: ClusterSpec | None
    prices: Prices

    @cached_property
    def num_gpus(self) -> float:
        """GPUs that are paid for."""
        return self.recorded.most_held if self.cluster is None else float(self.cluster.num_gpus)

    @cached_property
    def span_hours(self) -> float:
        """Hours that are paid for."""
        first, last = self.recorded.span
        return (last - first) / _HOUR

    @cached_property
    def total(self) -> float:
        """What all GPUs cost over the span."""
        if self.cluster is None:
            hours = self.recorded.gpu_time.sum() / _HOUR
            rate = self.cost.sum() / hours if hours else self._rate_of(None)
            return float(self.num_gpus * self.span_hours * rate)
        kinds = [node for node in self.cluster.node_types if node.gpus]
        rates = [node.count * node.gpus * self.prices.of(node.gpu_type) for node in kinds]
        return float(sum(rates) * self.span_hours)

    @cached_property
    def cost(self) -> np.ndarray:
        """Float array (n,): what each job's GPU time costs, jobs-table order."""
        coded = self.recorded.jobs["gpu_type"].combine_chunks().dictionary_encode()
        held = self.recorded.gpu_time > 0
        codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
        types = [*coded.dictionary.to_pylist(), None]
        # Only types that cost anything need a price.
        used = np.unique(codes[held])
        rates = np.zeros(len(types))
        for code in used:
            rates[code] = self._rate_of(types[code])
        cost: np.ndarray = rates[codes] * self.recorded.gpu_time / _HOUR
        return cost

    @property
    def allocated(self) -> float:
        """What the GPU time that jobs held costs."""
        return float(self.cost.sum())

    @property
    def idle(self) -> float:
        """What the GPU time that nobody held costs; below 0 where more was held than there is."""
        return self.total - self.allocated

    def by(self, column: str) -> pa.Table:
        """Return what each user's or virtual cluster's jobs cost.

        Args:
            column: one of `COST_BY`.

        Returns:
            Most expensive first, then by name: the column, ``num_jobs``, ``gpu_time`` (GPU-s),
            ``cost``, ``share`` (of the bill; null where it is 0). The costs and `idle` add up to
            `total`.

        Raises:
            SpecError: ``column`` is none of them.
        """
        checked_choice("by", column, COST_BY)
        codes, labels = self.recorded.names(column)
        return self._grouped(codes, labels, column)

    def by_type(self) -> pa.Table:
        """Return what the jobs of each GPU type, as asked for, cost: see `by`."""
        names = self.recorded.jobs["gpu_type"].fill_null(ANY_TYPE).combine_chunks()
        coded = names.dictionary_encode()
        return self._grouped(
            coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist(), "gpu_type"
        )

    def _grouped(self, codes: np.ndarray, labels: list[str], column: str) -> pa.Table:
        cost = np.bincount(codes, self.cost, minlength=len(labels))
        held = np.bincount(codes, self.recorded.gpu_time, minlength=len(labels))
        jobs = np.bincount(codes, minlength=len(labels))
        order = sorted(range(len(labels)), key=lambda i: (-cost[i], -held[i], labels[i]))
        whole = self.total
        shares = [cost[i] / whole if whole > 0 else None for i in order]
        return pa.table(
            {
                column: pa.array([labels[i] for i in order], pa.string()),
                "num_jobs": jobs[order],
                "gpu_time": held[order],
                "cost": cost[order],
                "share": pa.array(shares, pa.float64()),
            }
        )

    def _rate_of(self, wanted: str | None) -> float:
        """Return what a GPU hour of a job costs that accepts these types.

        Of several that differ, the mean is taken, by how many GPUs of each the cluster has.
        """
        asked = None if wanted is None else tuple(part for part in wanted.split("|") if part)
        kinds = () if self.cluster is None else self.cluster.node_types
        kinds = tuple(node for node in kinds if node.gpus)
        serve = [node for node in kinds if asked is None or node.gpu_type in asked]
        if not serve and asked is None and kinds:
            serve = list(kinds)
        if serve:
            counts = np.array([node.count * node.gpus for node in serve], dtype=np.float64)
            return float(np.average([self.prices.of(n.gpu_type) for n in serve], weights=counts))
        known = [self.prices.of(name) for name in (asked or (None,))]
        return float(np.mean(known))


def bill(jobs: pa.Table, cluster: ClusterSpec | None, prices: Prices) -> Bill:
    """Return the bill of a trace.

    Args:
        cluster: whose GPUs are paid for; None = not known.

    Raises:
        SpecError: a GPU type that was used, or that the cluster has, has no price, or a type with
            a price occurs nowhere, or has two.
    """
    types: tuple[str, ...] = ()
    aliases: dict[str, str] = {}
    if cluster is not None:
        types, aliases = cluster.gpu_types, cluster.aliases
        jobs = with_types_of(jobs, types, aliases)
    asked = jobs["gpu_type"].unique().drop_null().to_pylist()
    there = {part.strip() for name in asked for part in name.split("|")}
    named = prices.named_as(sorted(there.union(types)), aliases)
    made = Bill(Recorded.of(jobs), cluster, named)
    _ = made.total, made.cost
    return made
