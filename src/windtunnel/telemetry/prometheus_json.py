"""Answers of Prometheus' HTTP interface: ``query_range`` (a matrix) and ``query`` (a vector).

``{"status": "success", "data": {"resultType": ..., "result": [{"metric": {labels},
"values": [[seconds, "number"], ...]}]}}``; numbers are texts, among them ``NaN`` and ``+Inf``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from windtunnel.errors import TraceError, quote
from windtunnel.telemetry.blocks import Meter, file_size, files_of
from windtunnel.telemetry.clock import LAST_SECOND
from windtunnel.telemetry.dcgm import batch_of
from windtunnel.telemetry.exposition import place_of
from windtunnel.telemetry.sample_batches import BATCH_ROWS, OTHER_METRIC
from windtunnel.traces.json_text import broken_json, json_bytes
from windtunnel.traces.source import plain_message, read_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.telemetry.exposition import Place
    from windtunnel.telemetry.sample_batches import Tally


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] | None = None
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct):
    result_type: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""
    error_type: str = msgspec.field(default="", name="errorType")


class PrometheusJson:
    """Reads answers one after another; each fits memory, as Prometheus bounds a query's points.

    Args:
        path: plain or gzip JSON, or a folder of such files (``.json``), by name; ``-`` = standard
            input.
        metric: read only these; None = all. Series without a name (a query that computes) take
            it, where it is one.
    """

    def __init__(self, path: str | Path, *, metric: Collection[str] | None = None) -> None:
        self._files = files_of(path, ".json")
        self._file = str(path)
        self._metric = metric
        self.size = sum(map(file_size, self._files))
        self.metrics: tuple[str, ...] | None = None if metric is None else tuple(sorted(metric))

    def batches(self, tally: Tally, meter: Meter) -> Iterator[pa.RecordBatch]:
        """Yield the samples file by file, series by series.

        Raises:
            TraceError: one is no such answer, or the server answered with an error.
        """
        for file in self._files:
            self._file = str(file)
            yield from self._batches_of(self._series(file), tally)
            meter.advance(file_size(file))

    def _batches_of(self, series: list[_Series], tally: Tally) -> Iterator[pa.RecordBatch]:
        times: list[float] = []
        values: list[float] = []
        metrics: list[str] = []
        places: list[Place] = []
        for number, one in enumerate(series, 1):
            points = one.values if one.values is not None else [one.value] if one.value else []
            name = self._name(one, number)
            if self._metric is not None and name not in self._metric:
                tally.rows_read += len(points)
                tally.drop(OTHER_METRIC, len(points))
                continue
            place = place_of(one.metric)
            for time, text in points:
                times.append(self._checked(time, number))
                values.append(self._number(text, number))
            metrics += [name] * len(points)
            places += [place] * len(points)
            if len(times) >= BATCH_ROWS:
                yield batch_of(tally, np.array(times, np.float64), values, metrics, places)
                times, values, metrics, places = [], [], [], []
        yield batch_of(tally, np.array(times, np.float64), values, metrics, places)

    def _series(self, file: Path) -> list[_Series]:
        data = json_bytes(read_bytes(file), self._file)
        answer = self._decoded(data, _Answer, data)
        if answer.status != "success" or answer.data is None:
            raise TraceError(
                self._file,
                "a successful answer",
                column="status",
                value=answer.status,
                hint=f"Prometheus says {quote(answer.error_type)}: {quote(answer.error)}.",
            )
        if answer.data.result_type not in {"matrix", "vector"}:
            raise TraceError(
                self._file,
                "a matrix (query_range) or a vector (query)",
                column="resultType",
                value=answer.data.result_type,
            )
        found: list[_Series] = self._decoded(bytes(answer.data.result), list[_Series], data)
        return found

    def _decoded(self, part: bytes, kind: Any, whole: bytes) -> Any:
        try:
            return msgspec.json.decode(part, type=kind)
        except msgspec.ValidationError as error:
            raise TraceError(
                self._file,
                "an answer of Prometheus: {status, data: {resultType, result: [...]}}",
                hint=f"{plain_message(error)}.",
            ) from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise broken_json(whole, self._file, error) from error

    def _name(self, one: _Series, number: int) -> str:
        name = one.metric.get("__name__")
        if name is not None:
            return name
        if self._metric is not None and len(self._metric) == 1:
            return next(iter(self._metric))
        raise TraceError(
            self._file,
            "a series with its name (label __name__)",
            hint=f"Series {number:,} has none, as the query computes it: name it with metric=.",
        )

    def _checked(self, seconds: float, number: int) -> float:
        if not abs(seconds) < LAST_SECOND:
            raise TraceError(
                self._file, "seconds since 1970", value=seconds, hint=f"It is in series {number:,}."
            )
        return seconds

    def _number(self, text: str, number: int) -> float:
        try:
            if "_" not in text:
                return float(text)
        except ValueError:
            pass
        raise TraceError(
            self._file, "a number as text", value=text, hint=f"It is in series {number:,}."
        )
