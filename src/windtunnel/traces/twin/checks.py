"""What must hold between the parts of a twin, so that a file made by hand cannot break a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.traces.twin.model import (
    CATEGORIES,
    FORMAT,
    KNOWN,
    LEAST_COUNT,
    NUMBERS,
    SCALED,
    STATUS_WORDS,
    TIMES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.traces.twin.bins import Bins
    from windtunnel.traces.twin.model import Pooled, Statistics, Stratum

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
    if set(twin.known) != set(KNOWN):
        yield "$.known", f"the columns {', '.join(KNOWN)}"
    for column, split in twin.known.items():
        yield from _at(f"$.known.{column}", split.fault(totals, 2))
    for column in ("estimate", *NUMBERS):
        if twin.known[column].totals()[1] and not _anywhere(twin, column):
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
    told: list[tuple[str, Bins | None]] = [("wait", part.wait)]
    told += [(name, getattr(part, name)) for name in NUMBERS]
    told += [(f"estimate[{number}]", bins) for number, bins in enumerate(part.estimate)]
    if isinstance(getattr(part, "duration", None), dict):
        told.append(("duration", None))
    else:
        told.append(("duration", getattr(part, "duration", None)))
    for name, bins in told:
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
