"""Spot nodes as a recording has them: how many could be had at each tick, as failures of nodes.

Wu et al., "Can't Be Late", NSDI'24; skypilot-org/spot-traces: ``{"metadata": {"gap_seconds": 300},
"data": [4, 4, 3, ...]}``, a number of instances a tick.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec

from windtunnel.errors import SpecError
from windtunnel.sim.disruptions.failures import NodeFailure
from windtunnel.toml_file import MAX_BYTES

#: No recording has as many instances.
_MAX_NODES = 100_000
#: Nor as many that go.
_MAX_FAILURES = 1_000_000
#: Nor is any as long.
_MAX_SECONDS = 1e12


class _Metadata(msgspec.Struct):
    gap_seconds: float


class _Series(msgspec.Struct):
    metadata: _Metadata
    data: list[int]


def spot_failures(path: str | Path) -> tuple[NodeFailure, ...]:
    """Return when the nodes of a recording are away.

    Node ``i`` is up while more than ``i`` could be had, so that the last is the first to go; the
    cluster's other nodes always are. The first tick is time 0, the last one's number stays. A run
    does not know in advance when a node goes.

    Args:
        path: such a file of JSON.

    Raises:
        SpecError: the file is missing or is none, or a number in it is out of range.
    """
    series = _read(Path(path))
    gap, counts = series.metadata.gap_seconds, series.data
    failures, away, up = [], [0] * max(counts), max(counts)
    for tick, count in enumerate(counts):
        for node in range(count, up):
            away[node] = tick
        back = tick * gap
        failures += [NodeFailure(time=away[i] * gap, node=i, until=back) for i in range(up, count)]
        up = count
    failures += [NodeFailure(time=away[i] * gap, node=i) for i in range(up, len(away))]
    return tuple(sorted(failures, key=lambda failure: (failure.time, failure.node)))


def _read(path: Path) -> _Series:
    expected = 'expected {"metadata": {"gap_seconds": 300}, "data": [4, 3, ...]}'
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SpecError(str(path), f"has more than {MAX_BYTES:,} bytes; {expected}.")
        series = msgspec.json.decode(path.read_bytes(), type=_Series)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise SpecError(str(path), f"cannot be read: {error}; {expected}.") from error
    if not 0 < series.metadata.gap_seconds < float("inf"):
        found = f"found {series.metadata.gap_seconds:g}; expected a number of seconds above 0."
        raise SpecError(f"{path}: metadata.gap_seconds", found)
    if not series.data or min(series.data) < 0 or not 0 < max(series.data) <= _MAX_NODES:
        message = f"expected at least one number from 0 to {_MAX_NODES:,}, and one above 0."
        raise SpecError(f"{path}: data", message)
    if series.metadata.gap_seconds * len(series.data) > _MAX_SECONDS:
        found = (
            f"found {series.metadata.gap_seconds:g}; expected all ticks within {_MAX_SECONDS:g} s."
        )
        raise SpecError(f"{path}: metadata.gap_seconds", found)
    falls = sum(max(0, one - other) for one, other in pairwise([max(series.data), *series.data]))
    if falls > _MAX_FAILURES:
        message = f"nodes go {falls:,} times; expected at most {_MAX_FAILURES:,} in a recording."
        raise SpecError(f"{path}: data", message)
    return series
