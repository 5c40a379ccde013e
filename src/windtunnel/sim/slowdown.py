"""`Slowdown`: how much slower a job runs where it is spread, or shares a GPU or a node's cores.

A job's rate (DESIGN, "a job's progress") is 1 in the best of places, and otherwise the product of

* *locality*: ``spread`` over more nodes than it needs, times ``rack`` over more racks than that.
  Gavel (Narayanan et al., OSDI 2020) measured what it calls unconsolidated speeds: over jobs of 2
  to 8 V100s the median ratio to consolidated ones is 0.42 (0.10 to 1.35), `SPREAD`;
* *colocation*, the pace of its slowest node: ``share`` for each other job on a GPU that one of its
  tasks is on, times 1 - ``cpu`` x (share of the node's cores that other jobs hold). In the talk on
  PAI (Weng et al., NSDI 2022) co-located instances slow each other by up to 28 %, `CPU`;
* *network*, the part of its ``traffic`` that the uplinks it crosses carry, which it shares with the
  other jobs on them (`windtunnel.sim.uplinks`).

Measured tables (`windtunnel.sim.factor_tables`) go before ``spread`` and ``share``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.sim.factor_tables import ShareFactor, SpreadFactor, read_share, read_spread
from windtunnel.toml_file import read_toml, refuse_unknown_keys, struct_of

#: Gavel's median speed of a gang spread over servers, relative to one that is not.
SPREAD = 0.42
#: The most by which CPU contention slows a job, as reported of PAI.
CPU = 0.28
#: Factors beyond these are typing errors; a rate of 0 would never end.
LEAST, MOST = 0.001, 100.0
#: Words that may stand without a number, for what was published.
_PUBLISHED = {"spread": SPREAD, "cpu": CPU}
#: Key in a TOML file or word -> the field whose rows the CSV file holds.
_TABLES = {"spread_table": "spread_by", "share_table": "share_by"}


class Slowdown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What slows jobs down; the defaults slow nothing.

    Attributes:
        spread: rate of a job over more nodes than it needs.
        rack: rate of a job over more racks than it needs; on top of ``spread``.
        share: rate of a job one of whose tasks shares its GPU with another job.
        cpu: how much the rate falls where others hold all of a node's cores; linear in their share.
        spread_by: rates of kinds of jobs, in place of ``spread``.
        share_by: rates of pairs of kinds of jobs, in place of ``share``.
        traffic: what a job sends over each uplink that it crosses at rate 1, GB/s.
        links: level of the topology (``host``: the nodes) -> what a domain's uplink carries, GB/s;
            other levels never limit anybody.

    >>> Slowdown.parse("spread,traffic=5,link.host=12.5").links
    {'host': 12.5}
    """

    spread: float = 1.0
    rack: float = 1.0
    share: float = 1.0
    cpu: float = 0.0
    spread_by: tuple[SpreadFactor, ...] = ()
    share_by: tuple[ShareFactor, ...] = ()
    traffic: float = 0.0
    links: dict[str, float] = {}

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            SpecError: a factor is out of range, or a table has two rows for the same.
        """
        for name, most in (("spread", MOST), ("rack", MOST), ("share", 1.0)):
            _check(name, getattr(self, name), most)
        if not 0 <= self.cpu < 1:
            raise SpecError("slowdown.cpu", f"found {self.cpu}; expected at least 0, below 1")
        for index, spread in enumerate(self.spread_by):
            _check(f"spread_by[{index}].factor", spread.factor, MOST)
        for index, pair in enumerate(self.share_by):
            _check(f"share_by[{index}].factor", pair.factor, 1.0)
            _check(f"share_by[{index}].other_factor", pair.other_factor, 1.0)
        if not 0 <= self.traffic < math.inf or bool(self.traffic) != bool(self.links):
            message = (
                f"found {self.traffic:g} with {len(self.links)} links; expected GB/s and links"
            )
            raise SpecError("slowdown.traffic", message)
        for name, carries in self.links.items():
            if not 0 < carries < math.inf:
                raise SpecError(f"slowdown.links.{name}", f"found {carries}; expected GB/s above 0")
        self.spread_factors()
        self.share_factors()

    @classmethod
    def from_toml(cls, path: str | Path) -> Slowdown:
        """Read a model from a TOML file.

        The file has the fields of the model; ``spread_table`` and ``share_table`` name CSV files
        (relative to it) whose rows go into ``spread_by`` and ``share_by``.

        Raises:
            SpecError: the file is missing, not TOML, or breaks the rules; names the key.
            TraceError: a table cannot be read.
        """
        return cls.from_mapping(read_toml(path), source=str(path), folder=Path(path).parent)

    @classmethod
    def from_mapping(
        cls, raw: dict[str, Any], *, source: str = "slowdown", folder: Path | None = None
    ) -> Slowdown:
        """Build a model from plain data (parsed TOML or JSON).

        Args:
            raw: the fields, or files for them as in `from_toml`.
            source: where it comes from, for messages.
            folder: where these files are; None = the current folder.

        Raises:
            SpecError: an unknown key (the nearest is suggested), a wrong type or value.
            TraceError: a table cannot be read.
        """
        data = dict(raw)
        refuse_unknown_keys(raw, (*cls.__struct_fields__, *_TABLES), f"{source}: $")
        readers = {"spread_table": read_spread, "share_table": read_share}
        for key, read in readers.items():
            if key not in raw:
                continue
            if not isinstance(raw[key], str) or _TABLES[key] in raw:
                message = f"found {quote(raw[key])}; expected a CSV file, and no {_TABLES[key]}"
                raise SpecError(f"{source}: $.{key}", message)
            data[_TABLES[key]] = read((folder or Path()) / data.pop(key))
        return struct_of(cls, data, source)

    @classmethod
    def parse(cls, text: str) -> Slowdown:
        """Return the model that a command-line word stands for.

        Args:
            text: a ``.toml`` file, or ``spread=0.42,rack=0.8,share=0.9,cpu=0.28`` with any of these
                and ``spread_table=FILE``, ``share_table=FILE``, ``traffic=5,link.host=12.5``;
                ``spread`` and ``cpu`` alone stand for what was published.

        Raises:
            SpecError: none of these.
            TraceError: a table cannot be read.
        """
        if text.endswith(".toml"):
            return cls.from_toml(text)
        raw: dict[str, Any] = {}
        for part in text.split(","):
            key, _, value = (piece.strip() for piece in part.partition("="))
            known = ("spread", "rack", "share", "cpu", "traffic", *_TABLES)
            into, level = raw, key.removeprefix("link.")
            if level != key:
                into, key = raw.setdefault("links", {}), level
            elif key not in known:
                raise SpecError.unknown("slowdown", key, [*known, "link.host"])
            if key in into:
                raise SpecError("slowdown", f"found {key} twice; expected it once")
            into[key] = value if key in _TABLES else _number(key, value)
        return cls.from_mapping(raw)

    def to_mapping(self) -> dict[str, Any]:
        """Return the model as plain data that `from_mapping` reads back."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    @property
    def by_locality(self) -> bool:
        """Whether it matters where a job is."""
        return self.spread != 1 or bool(self.spread_by) or self.rack != 1

    @property
    def by_network(self) -> bool:
        """Whether it matters who else sends over the same uplinks."""
        return bool(self.links)

    @property
    def by_sharing(self) -> bool:
        """Whether it matters who shares a GPU."""
        return self.share != 1 or bool(self.share_by)

    def spread_factors(self) -> dict[tuple[str, float], float]:
        """Return (job type, GPUs) -> rate.

        Raises:
            SpecError: two rows for the same.
        """
        found: dict[tuple[str, float], float] = {}
        for row in self.spread_by:
            key = (row.job_type, row.num_gpus)
            if key in found:
                what = f"two rows for {quote(row.job_type)} with {row.num_gpus:g} GPUs"
                raise SpecError("slowdown.spread_by", f"{what}; expected one")
            found[key] = row.factor
        return found

    def share_factors(self) -> dict[tuple[str, str], float]:
        """Return (job type, job type beside it) -> rate of the first.

        Raises:
            SpecError: two rows that disagree on a pair.
        """
        found: dict[tuple[str, str], float] = {}
        for row in self.share_by:
            for pair, factor in (
                ((row.job_type, row.other), row.factor),
                ((row.other, row.job_type), row.other_factor),
            ):
                if found.setdefault(pair, factor) != factor:
                    what = f"{quote(pair[0])} beside {quote(pair[1])} has two rates"
                    raise SpecError("slowdown.share_by", f"{what}; expected one")
        return found


def resolve_slowdown(given: Slowdown | str | dict[str, Any] | None) -> Slowdown | None:
    """Return the model that was given as an object, in words, or as plain data.

    Raises:
        SpecError, TraceError: as `Slowdown.parse`; or it is something else.
    """
    if given is None or isinstance(given, Slowdown):
        return given
    if isinstance(given, str):
        return Slowdown.parse(given)
    if isinstance(given, dict):
        return Slowdown.from_mapping(given)
    raise SpecError("slowdown", f"found {quote(given)}; expected a Slowdown, a file or words")


def _check(name: str, value: float, most: float) -> None:
    if not LEAST <= value <= most:
        message = f"found {value}; expected a factor from {LEAST:g} to {most:g}"
        raise SpecError(f"slowdown.{name}", message)


def _number(key: str, value: str) -> float:
    if not value and key in _PUBLISHED:
        return _PUBLISHED[key]
    try:
        return float(value)
    except ValueError:
        raise SpecError("slowdown", f"{key}={value}: expected a number") from None
