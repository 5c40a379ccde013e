"""Scrapes of NVIDIA's DCGM exporter, as Prometheus text: one or many in a file, or a folder.

A line may carry its time (milliseconds, or seconds with a decimal point as in OpenMetrics). Where
none does, the user knows when the scrape was taken; a scrape ends where one of its series comes
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.telemetry.blocks import Meter, file_size, files_of, line_blocks
from windtunnel.telemetry.clock import LAST_SECOND, epoch_seconds
from windtunnel.telemetry.exposition import Place, labels_of, place_of, reading_of, without_blanks
from windtunnel.telemetry.sample_batches import OTHER_METRIC, batch, texts
from windtunnel.traces.header import not_utf8

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.telemetry.blocks import Block
    from windtunnel.telemetry.exposition import Reading
    from windtunnel.telemetry.sample_batches import Tally

PREFIX = "DCGM_"
NOT_DCGM = "no DCGM metric"
#: Places of series that are remembered; a file of more is read anew, not wrongly.
_REMEMBERED = 100_000


class Dcgm:
    """Reads expositions.

    Args:
        path: a file, or a folder whose ``.prom`` and ``.txt`` files are read by name.
        metric: read only these; None = all whose name begins with ``DCGM_``.
        time: when the first scrape of a file without times was taken, ISO 8601 or seconds since
            1970; None = such samples have no time.
        interval: seconds between the scrapes of such a file.

    Raises:
        SpecError: ``time`` is no instant, or ``interval`` no number above 0.
        TraceError: there is no such file, or none in the folder.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        metric: Collection[str] | None = None,
        time: str | float | None = None,
        interval: float | None = None,
    ) -> None:
        if interval is not None and not 0 < interval < np.inf:
            raise SpecError("interval", f"found {quote(interval)}; expected seconds above 0")
        self._files = files_of(path, ".prom", ".txt")
        self._metric = None if metric is None else frozenset(metric)
        self._start = None if time is None else epoch_seconds(time, "time")
        self._interval = interval
        self.size = sum(file_size(file) for file in self._files)
        self.metrics: tuple[str, ...] | None = None if metric is None else tuple(sorted(metric))

    def batches(self, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield the samples in the order of the lines."""
        for path in self._files:
            scrape = _Scrape(path, self._start, self._interval)
            for block in line_blocks(path, meter):
                yield self._of_block(block, path, scrape, tally)
            if scrape.untimed:
                tally.notes.append(
                    f"{scrape.untimed:,} samples of {path.name} have no time: "
                    "tell when the scrape was taken with time=."
                )

    def _of_block(self, block: Block, path: Path, scrape: _Scrape, tally: Tally) -> pa.RecordBatch:
        file = str(path)
        try:
            lines = block.data.decode().split("\n")
        except UnicodeDecodeError as error:
            raise not_utf8(block.data, file, block.line - 1, error) from error
        times: list[float] = []
        values: list[float] = []
        metrics: list[str] = []
        places: list[Place] = []
        for number, text in enumerate(lines, block.line):
            if "\r" in text.strip():
                raise TraceError(file, "lines that end in LF, not in CR alone", row=number)
            reading = reading_of(text, file, number)
            if reading is None:
                continue
            refused = self._refused(reading.name)
            if refused is not None:
                tally.rows_read += 1
                tally.drop(refused, 1)
                continue
            times.append(scrape.time_of(reading, number))
            places.append(scrape.place(reading, number))
            values.append(reading.value)
            metrics.append(reading.name)
        return batch_of(tally, np.array(times, np.float64), values, metrics, places)

    def _refused(self, name: str) -> str | None:
        """Return why a metric is not read, None where it is."""
        if self._metric is not None:
            return None if name in self._metric else OTHER_METRIC
        return None if name.startswith(PREFIX) else NOT_DCGM


def batch_of(
    tally: Tally,
    times: np.ndarray,
    values: list[float],
    metrics: list[str],
    places: list[Place],
) -> pa.RecordBatch:
    """Return readings as one batch, DCGM's constants for "no value" counted as blank."""
    measured = np.array(values, np.float64)
    names = np.array(metrics, dtype=object)
    for name in sorted(set(metrics)):
        of_metric = names == name
        measured[of_metric] = without_blanks(name, measured[of_metric])
    return batch(
        tally,
        time=times,
        value=measured,
        node=texts([place.node for place in places]),
        gpu=texts([place.gpu for place in places]),
        job_id=texts([place.job_id for place in places]),
        metric=texts(metrics),
    )


class _Scrape:
    """What a file's lines before this one tell of its time and its series."""

    def __init__(self, path: Path, start: float | None, interval: float | None) -> None:
        self._file = str(path)
        self._start = start
        self._interval = interval
        self._number = 0
        self._seen: set[tuple[str, str]] = set()
        self._places: dict[str, Place] = {}
        self.untimed = 0

    def time_of(self, reading: Reading, line: int) -> float:
        """Return a reading's time as UTC seconds since 1970, NaN = not known.

        Raises:
            TraceError: a second scrape begins and nothing tells when it was taken.
        """
        if reading.time is not None:
            seconds = reading.time / 1000 if reading.whole else reading.time
            if not abs(seconds) < LAST_SECOND:
                raise TraceError(
                    self._file, "milliseconds since 1970", row=line, column="time",
                    value=reading.time,
                )  # fmt: skip
            return seconds
        if self._start is None:
            self.untimed += 1
            return np.nan
        series = (reading.name, reading.labels)
        if series in self._seen:
            self._number += 1
            self._seen.clear()
            if self._interval is None:
                raise TraceError(
                    self._file,
                    "one scrape, or lines with their times",
                    row=line,
                    value=reading.name,
                    hint="The series comes again: tell the seconds between scrapes with interval=.",
                )
        self._seen.add(series)
        return self._start + self._number * (self._interval or 0.0)

    def place(self, reading: Reading, line: int) -> Place:
        """Return where a reading was taken; the same labels come in every scrape.

        Raises:
            TraceError: its labels are none.
        """
        known = self._places.get(reading.labels)
        if known is None:
            known = place_of(labels_of(reading.labels, self._file, line))
            if len(self._places) >= _REMEMBERED:
                self._places.clear()
            self._places[reading.labels] = known
        return known
