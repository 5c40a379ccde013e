"""Throughput models as files: what ``windtunnel throughput fit`` writes, everything else reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from windtunnel.errors import TraceError, WindtunnelError
from windtunnel.throughput.analytic import Bandwidths, Parameters
from windtunnel.throughput.fitting import BOUNDS
from windtunnel.throughput.goodput import GoodputTraining
from windtunnel.throughput.goodput_file import GoodputFile
from windtunnel.throughput.options import Option, parse_placement
from windtunnel.throughput.plans import Plan
from windtunnel.throughput.tables import MeasuredTable, Measurement
from windtunnel.throughput.training import TrainingModel

#: What a file says it is.
FORMAT = "windtunnel training model 1"
_SEVEN = tuple[float, float, float, float, float, float, float]


class _Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    plan: str
    placement: str
    iteration_time: float | None
    cpu_threads: int | None = None


class _Links(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pcie: float | None
    nvlink: float | None


class _File(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="format",
    tag=FORMAT,
):
    """One file; `model_data` writes it. The last three entries tell of the fit, to readers."""

    name: str
    title: str
    global_batch_size: int
    parameters: int | None = None
    hidden: int | None = None
    layers: int | None = None
    sequence: int | None = None
    forward_time: float | None = None
    bandwidths: _Links | None = None
    network: float | None = None
    gpus_per_card: int = 1
    gpu_memory_gib: float | None = None
    offload_threads: int | None = None
    fitted: Parameters | None = None
    three_d: _SEVEN | None = None
    points: list[_Point]
    gpu_type: str | None = None
    provenance: str = ""
    fit: dict[str, Any] | None = None
    errors: list[dict[str, Any]] = []
    notes: list[str] = []


#: Entries that a model has under the same names, the numbers among them all above 0.
_POSITIVE = (
    *("global_batch_size", "parameters", "hidden", "layers", "sequence", "forward_time"),
    *("network", "gpus_per_card", "gpu_memory_gib", "offload_threads"),
)
_SAME = ("name", "title", *_POSITIVE, "fitted", "three_d", "gpu_type", "provenance")


def model_data(model: TrainingModel) -> dict[str, Any]:
    """Return a model as plain data, which `read_model` understands; infinities are null."""
    links = model.bandwidths
    file = _File(
        **{name: getattr(model, name) for name in _SAME},
        bandwidths=None if links is None else _Links(_finite(links.pcie), _finite(links.nvlink)),
        points=[
            _Point(row.plan.name, row.placement, row.iteration_time, row.threads)
            for row in model.table.rows
        ],
    )
    data: dict[str, Any] = msgspec.to_builtins(file)
    return {name: value for name, value in data.items() if name not in ("fit", "errors", "notes")}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def read_model(path: str | Path) -> TrainingModel:
    """Read a training model.

    Args:
        path: JSON text as ``windtunnel throughput fit`` writes it of plans and placements.

    Raises:
        TraceError: it cannot be read or is no such model; names the place in it.
    """
    found = _read(path, _File)
    assert isinstance(found, TrainingModel)  # noqa: S101 - no other kind was asked for
    return found


def read_models(folder: str | Path) -> dict[str, Throughputs]:
    """Read every throughput model of a folder, ``*.json``, by name.

    Files of one name are one model where each says of which GPU type it is (``gpu_type``).

    Raises:
        TraceError: it is no folder, has no model, a file in it is none, or two have one name.
    """
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        hint = "windtunnel throughput fit points.csv --out FOLDER/NAME.json writes one."
        raise TraceError(str(folder), "a folder of training models, *.json", hint=hint)
    found: dict[str, dict[str | None, TrainingModel | GoodputTraining]] = {}
    for file in files:
        if file.is_fifo():  # it might never end
            raise TraceError(str(file), "a file", hint="It is a pipe.")
        model = _read(file, _File | GoodputFile)
        kind = None if model.gpu_type is None else model.gpu_type.casefold()
        same = found.setdefault(model.name, {})
        if kind in same or (same and None in {kind, *same}):
            hint = "Files of one name need a gpu_type each."
            raise TraceError(
                str(file), "a name of its own", column="name", value=model.name, hint=hint
            )
        same[kind] = model
    return {
        name: next(iter(models.values())) if len(models) == 1 else ByType(tuple(models.values()))
        for name, models in found.items()
    }


@dataclass(frozen=True, eq=False)
class ByType:
    """A model that was measured on several GPU types.

    Attributes:
        models: one a type.
    """

    models: tuple[TrainingModel | GoodputTraining, ...]

    def options(self, **nodes: int) -> tuple[Option, ...]:
        """Return the options on all types; see `TrainingModel.options`."""
        found = [option for model in self.models for option in model.options(**nodes)]
        return tuple(sorted(found, key=Option.order))


#: What an elastic job may train.
Throughputs: TypeAlias = TrainingModel | GoodputTraining | ByType


def _read(path: str | Path, kinds: Any) -> TrainingModel | GoodputTraining:
    """Read a model of some kinds of files.

    Raises:
        TraceError: it cannot be read or is none.
    """
    file = str(path)
    try:
        read = msgspec.json.decode(Path(path).read_bytes(), type=kinds)
        return read.model() if isinstance(read, GoodputFile) else _model(read)
    except OSError as error:
        hint = f"{error.strerror or error}."
        raise TraceError(file, "a readable training model", hint=hint) from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, WindtunnelError) as error:
        hint = f"{str(error).rstrip('.')}."
        raise TraceError(file, "a training model as JSON text", hint=hint) from error


def _model(read: _File) -> TrainingModel:
    """Return the model of a file.

    Raises:
        SpecError: a plan or placement is none.
        TraceError: a number that must be above 0 is not.
    """
    rows = []
    for index, point in enumerate(read.points):
        _positive(f"points[{index}].iteration_time", point.iteration_time)
        _positive(f"points[{index}].cpu_threads", point.cpu_threads)
        plan = Plan.parse(point.plan)
        plan.degrees(sum(parse_placement(point.placement)))  # refuses a plan of other GPUs
        rows.append(Measurement(plan, point.placement, point.iteration_time, point.cpu_threads))
    for name in _POSITIVE:
        _positive(name, getattr(read, name))
    links = read.bandwidths
    if links is not None:
        _positive("bandwidths.pcie", links.pcie)
        _positive("bandwidths.nvlink", links.nvlink)
    fitted = read.fitted
    if fitted is not None:
        for name, (least, most) in zip(fitted.__struct_fields__, BOUNDS, strict=True):
            value = getattr(fitted, name)
            if not least <= value <= most:
                expected = f"a number from {least:g} to {most:g}"
                raise TraceError("the model", expected, column=f"fitted.{name}", value=value)
    if min(read.three_d or (0.0,)) < 0:
        raise TraceError("the model", "numbers >= 0", column="three_d", value=read.three_d)
    return TrainingModel(
        **{name: getattr(read, name) for name in _SAME},
        table=MeasuredTable(tuple(rows)),
        bandwidths=None
        if links is None
        else Bandwidths(links.pcie or math.inf, links.nvlink or math.inf),
        notes=tuple(read.notes),
    )


def _positive(name: str, value: float | None) -> None:
    if value is not None and not value > 0:
        raise TraceError("the model", "a number > 0", column=name, value=value)
