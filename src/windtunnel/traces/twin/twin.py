"""`Twin`: statistics of a trace that can be saved, and made a trace of."""

from __future__ import annotations

import json
import math
import textwrap
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError, TraceError
from windtunnel.toml_file import toml_key, toml_value
from windtunnel.traces.readers import reader
from windtunnel.traces.source import plain_message, read_bytes, short_name, source_name
from windtunnel.traces.target import in_one_piece
from windtunnel.traces.twin import sample
from windtunnel.traces.twin.model import (
    CATEGORIES,
    FORMAT,
    KNOWN,
    LEAST_COUNT,
    NUMBERS,
    OPTIONAL,
    SCALED,
    STATUS_WORDS,
    TIMES,
    Statistics,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.traces.trace import Trace
    from windtunnel.traces.twin.bins import Bins
    from windtunnel.traces.twin.model import Pooled, Stratum

_WIDTH = 100
_HEAD = """\
# A twin of a trace: statistics from which windtunnel generates jobs like those of the source.
# No number rests on fewer than min_count jobs. Of the source's names only those of the columns
# listed as `kept` are in it.
"""


def to_json(twin: Statistics) -> str:
    """Return a twin as JSON text."""
    plain = msgspec.to_builtins(twin)
    return (
        json.dumps(plain, separators=(",", ":"), allow_nan=False).replace('{"gpus":', '\n{"gpus":')
        + "\n"
    )


def to_toml(twin: Statistics) -> str:
    """Return a twin as TOML text."""
    lines: list[str] = []
    _table(msgspec.to_builtins(twin), (), lines)
    return _HEAD + "\n".join(lines) + "\n"


def _table(data: dict[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    """Add a table: its values first, then the tables in it."""
    inner: dict[str, Any] = {}
    for key, value in data.items():
        is_tables = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
        if isinstance(value, dict) or is_tables:
            inner[key] = value
        else:
            lines.append(f"{toml_key(key)} = {_value(value)}")
    for key, value in inner.items():
        here = (*path, toml_key(key))
        for part in value if isinstance(value, list) else [value]:
            title = ".".join(here)
            lines.extend(("", f"[[{title}]]" if isinstance(value, list) else f"[{title}]"))
            _table(part, here, lines)


def _value(value: Any) -> str:
    """Return a value as TOML; long lists of numbers, and lists of lists, over several lines."""
    if not isinstance(value, list | tuple):
        return toml_value(value)
    if value and isinstance(value[0], list):
        return "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
    flat = toml_value(value)
    if len(flat) < _WIDTH - 18 or any(isinstance(item, str) for item in value):
        return flat
    filled = textwrap.fill(flat[1:-1], _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f"[\n{filled},\n]"


#: No logarithms of numbers of jobs or of GPU time lie farther apart.
_MAX_SPREAD = 100
#: Where something is wrong, and what was expected.
Fault = tuple[str, str]


def faults(twin: Statistics) -> Iterator[Fault]:
    """Yield what is wrong in a twin, part by part; each part may rely on those before it."""
    if twin.format != FORMAT:
        yield "$.format", f"{FORMAT!r}"
    if twin.min_count < LEAST_COUNT:
        yield "$.min_count", f"at least {LEAST_COUNT}"
    yield from _at("$.arrivals", twin.arrivals.fault())
    totals = [stratum.jobs for stratum in twin.strata]
    if not totals or min(totals) < 1 or sum(totals) != twin.jobs:
        yield "$.strata", f"strata that have {twin.jobs} jobs together"
        return
    yield from _endings(twin)
    for number, stratum in enumerate(twin.strata):
        yield from _stratum(stratum, f"$.strata[{number}]")
        if stratum.days is not None:
            fault = stratum.days.fault(twin.arrivals.num_days)
            yield from _at(f"$.strata[{number}].days", fault)
    yield from _numbers(twin.pooled, "$.pooled")
    yield from _at("$.ended", twin.ended.fault(totals, len(twin.endings)))
    yield from _known(twin, totals)
    yield from _names(twin, totals)
    if twin.templates is not None:
        yield from _at("$.templates", twin.templates.fault())
    if not set(twin.whole) <= set(SCALED):
        yield "$.whole", f"some of {', '.join(SCALED)}"
    if not 0 <= twin.template_spread < math.inf:
        yield "$.template_spread", "a number >= 0"


def _known(twin: Statistics, totals: list[int]) -> Iterator[Fault]:
    if not set(KNOWN) - OPTIONAL <= set(twin.known) <= set(KNOWN):
        yield "$.known", f"the columns {', '.join(KNOWN)}"
    for column, split in twin.known.items():
        yield from _at(f"$.known.{column}", split.fault(totals, 2))
    for column in ("estimate", *NUMBERS):
        if column in twin.known and twin.known[column].totals()[1] and not _anywhere(twin, column):
            yield f"$.pooled.{column}", "values, because some jobs have them"


def _at(path: str, fault: str) -> Iterator[Fault]:
    if fault:
        yield path, fault


def _endings(twin: Statistics) -> Iterator[Fault]:
    names = [ending.name for ending in twin.endings]
    if not names or len(set(names)) < len(names) or "rest" in names:
        yield "$.endings", "at least one, with names of their own other than 'rest'"
    for number, ending in enumerate(twin.endings):
        if ending.status is not None and ending.status not in STATUS_WORDS:
            yield f"$.endings[{number}].status", f"one of {', '.join(sorted(STATUS_WORDS))}"
        if not set(ending.times) <= set(TIMES):
            yield f"$.endings[{number}].times", f"some of {', '.join(TIMES)}"
    known = {time for ending in twin.endings for time in ending.times}
    if "duration" in known and not _anywhere(twin, "duration"):
        yield "$.pooled.duration", "run times, because endings have some"
    if "start" in known and not _anywhere(twin, "wait"):
        yield "$.pooled.wait", "waits, because endings have starts"


def _anywhere(twin: Statistics, name: str) -> bool:
    """Return whether any part tells a distribution."""
    return any(getattr(part, name) for part in (twin.pooled, *twin.strata))


def _stratum(stratum: Stratum, path: str) -> Iterator[Fault]:
    if not 0 <= stratum.gpu_time < math.inf:
        yield f"{path}.gpu_time", "a number of GPU seconds >= 0"
    yield from _at(f"{path}.sizes", stratum.sizes.fault())
    for name, bins in stratum.duration.items():
        yield from _bins(bins, f"{path}.duration.{name}")
    yield from _numbers(stratum, path)


def _numbers(part: Stratum | Pooled, path: str) -> Iterator[Fault]:
    distributions: list[tuple[str, Bins | None]] = [("wait", part.wait)]
    distributions += [(name, getattr(part, name)) for name in NUMBERS]
    distributions += [(f"estimate[{number}]", bins) for number, bins in enumerate(part.estimate)]
    if not isinstance(part.duration, dict):
        distributions.append(("duration", part.duration))
    for name, bins in distributions:
        if bins is not None:
            yield from _bins(bins, f"{path}.{name}", signed=name == "priority")


def _bins(bins: Bins, path: str, *, signed: bool = False) -> Iterator[Fault]:
    fault = bins.fault()
    if not fault and not signed and bins.mean[0] < 0:
        fault = "means >= 0"
    yield from _at(path, fault)


def _names(twin: Statistics, totals: list[int]) -> Iterator[Fault]:
    if set(twin.names) != set(CATEGORIES):
        yield "$.names", f"the columns {', '.join(CATEGORIES)}"
        return
    for column, category in twin.names.items():
        path = f"$.names.{column}"
        names = category.names
        if not names or len(set(names)) < len(names):
            yield f"{path}.names", "at least one, each once"
        if len(category.gpu_time) != len(names):
            yield f"{path}.gpu_time", "one number for each name"
        if not all(0 <= value < math.inf for value in category.gpu_time):
            yield f"{path}.gpu_time", "numbers of GPU seconds >= 0"
        yield from _at(f"{path}.jobs", category.jobs.fault(totals, len(names)))
    classes = [name for name in twin.names["user_class"].names if name]
    if len(classes) != len(twin.users):
        yield "$.users", "one class for each name of user_class"
    for number, people in enumerate(twin.users):
        spreads = (people.job_spread, people.time_spread)
        if not 1 <= people.users <= twin.jobs or not all(0 <= s < _MAX_SPREAD for s in spreads):
            yield f"$.users[{number}]", f"1 to {twin.jobs} users and spreads >= 0, < {_MAX_SPREAD}"


class Twin(Statistics, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The statistics of a trace (`Statistics`), from which jobs like its own can be made."""

    def __post_init__(self) -> None:
        """Check that the parts agree.

        Raises:
            SpecError: they do not; names the first part at fault.
        """
        for path, expected in faults(self):
            raise SpecError(path, f"expected {expected}.")

    def generate(self, jobs: int | None = None, load: float = 1.0, seed: int = 0) -> Trace:
        """Return a trace whose jobs have the twin's statistics; see `sample.generate`.

        Args:
            jobs: how many; None = as many as the source.
            load: submissions a second over the source's; the twin is shorter where above 1.
            seed: same seed, same bytes; >= 0.

        Raises:
            SpecError: ``jobs < 1`` or too many, ``load <= 0`` or not finite, ``seed < 0``.
        """
        return sample.generate(self, jobs=jobs, load=load, seed=seed)

    def save(self, path: str | Path) -> None:
        """Write the twin as TOML, or as JSON where the name ends in ``.json``.

        Raises:
            TraceError: the file cannot be written; it appears whole or not at all.
        """
        text = to_json(self) if str(path).endswith(".json") else to_toml(self)
        with in_one_piece(path) as temporary:
            temporary.write_bytes(text.encode())

    @classmethod
    def load(cls, path: str | Path) -> Twin:
        """Read a twin back; ``-`` = standard input.

        Raises:
            TraceError: the file cannot be read, is neither TOML nor JSON, has a key that twins do
                not have or lacks one, or its numbers contradict each other.
        """
        file = source_name(path)
        try:
            text = read_bytes(path).decode("utf-8-sig")
            is_json = text.lstrip().startswith("{")
            data = json.loads(text) if is_json else tomllib.loads(text)
            return msgspec.convert(data, cls)
        except (msgspec.ValidationError, SpecError, RecursionError) as error:
            expected = "a twin as `windtunnel fit` writes it"
            raise TraceError(file, expected, hint=f"{plain_message(error)}.") from error
        except ValueError as error:  # of any of the parsers; half a surrogate pair; endless digits
            raise TraceError(
                file, "a twin as TOML or JSON", hint=f"{plain_message(error)}."
            ) from error


def _looks_like_twin(head: bytes) -> bool:
    return f'"{FORMAT}'.rpartition("-")[0].encode() in head


@reader("twin", extensions=(".twin.toml", ".twin.json"), sniff=_looks_like_twin)
def read_twin(
    path: str | Path, *, jobs: int | None = None, load: float = 1.0, seed: int = 0
) -> Trace:
    """Generate a trace from a twin's file; see `Twin.generate`.

    Raises:
        TraceError: the file is no twin.
        SpecError: an option is out of range.
    """
    trace = Twin.load(path).generate(jobs, load, seed)
    name = short_name(path).removesuffix(".toml").removesuffix(".twin")
    return replace(
        trace, metadata=replace(trace.metadata, name=f"{name} (twin)", source=source_name(path))
    )
