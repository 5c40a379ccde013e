"""The models that come with us: those of Morphling's evaluation (MLSys'25), on A800 GPUs."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.plugins import Catalogue
from windtunnel.throughput.analytic import Bandwidths, Parameters
from windtunnel.throughput.facts import StoredRecord
from windtunnel.throughput.options import parse_placement
from windtunnel.throughput.plans import Plan
from windtunnel.throughput.tables import MeasuredTable, Measurement, ProfiledPoint
from windtunnel.throughput.training import TrainingModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SEVEN = tuple[float, float, float, float, float, float, float]
_TIMES = dict[str, dict[str, float]]


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parameters: int
    hidden: int
    layers: int
    sequence: int
    bandwidths: tuple[float, float]
    fitted: _SEVEN
    sizes: list[tuple[int, list[str]]] = []
    plans: dict[str, str] = {}


class _Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rows: list[tuple[str, int, int, float, float, float, float]]


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model of the file; its comments say what each entry is."""

    name: str
    title: str
    global_batch_size: int
    parameters: int
    hidden: int
    layers: int
    sequence: int
    forward_time: float
    bandwidths: tuple[float, float]
    limits: dict[str, tuple[int, int]]
    stored: _Stored
    notes: list[str] = []
    fitted: _SEVEN | None = None
    three_d: _SEVEN | None = None
    network: float | None = None
    hand_kept: _SEVEN | None = None
    reference_iteration_time: float | None = None
    forward_divisors: dict[int, float] = {}
    offload_threads: int | None = None
    placements: dict[str, list[str]] = {}
    profile: _Profile = _Profile([])
    measured: _TIMES = {}
    measured_with_threads: dict[int, _TIMES] = {}


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    provenance: str
    gpus_per_card: int
    gpu_memory_gib: float
    models: list[_Record]


@lru_cache(maxsize=1)
def training_models() -> Mapping[str, TrainingModel]:
    """Return the models that come with us, by name.

    >>> from windtunnel.throughput.plans import Plan
    >>> training_models()["bert"].iteration_time(Plan.parse("zero-dp"), (4,))
    0.22865789473684212
    """
    raw = resources.files("windtunnel.throughput").joinpath("morphling.toml").read_bytes()
    facts = msgspec.toml.decode(raw, type=_Facts, strict=False)
    return MappingProxyType({r.name: _model(r, facts) for r in facts.models})


def as_model(name: str, given: Any) -> TrainingModel:
    """Return the model that an object is: a `TrainingModel`, or a function that returns one.

    Raises:
        SpecError: it is none.
    """
    found = given() if callable(given) and not isinstance(given, type) else given
    if not isinstance(found, TrainingModel):
        expected = "expected a TrainingModel, or a function without arguments that returns one"
        raise SpecError(f"model {name}".rstrip(), f"found {quote(found)}; {expected}.")
    return found


#: Throughput models by name, as in `windtunnel.plugins`.
THROUGHPUTS: Catalogue[TrainingModel] = Catalogue(
    "model", "throughputs", training_models, made=as_model
)


def training_model(name: str) -> TrainingModel:
    """Return the model of this name.

    Raises:
        SpecError: there is none; the nearest is suggested.
    """
    return THROUGHPUTS.resolve(name)


def throughput_model(
    name: str,
) -> Callable[[Callable[[], TrainingModel]], Callable[[], TrainingModel]]:
    """Register what the decorated function returns as the throughput model ``name``.

    Jobs of elastic runs whose ``template`` has the name run as fast as it says.

    Args:
        name: of the model; a second registration replaces the first.

    Raises:
        SpecError: the name is a published model's, or the function returns no `TrainingModel`.
    """
    return THROUGHPUTS.under(name)


#: Entries of a record that a model has under the same names.
_SAME = (
    *("name", "title", "global_batch_size", "parameters", "hidden", "layers", "sequence"),
    *("limits", "forward_time", "forward_divisors", "network", "three_d", "offload_threads"),
    "reference_iteration_time",
)


def _model(record: _Record, facts: _Facts) -> TrainingModel:
    fitted = record.fitted or record.hand_kept
    plan = Plan.parse
    stored = record.stored
    return TrainingModel(
        **{name: getattr(record, name) for name in _SAME},
        table=MeasuredTable(tuple(_measurements(record))),
        placements={
            plan(word): tuple(map(parse_placement, where))
            for word, where in record.placements.items()
        },
        bandwidths=Bandwidths(*record.bandwidths),
        gpus_per_card=facts.gpus_per_card,
        gpu_memory_gib=facts.gpu_memory_gib,
        fitted=None if fitted is None else Parameters(*fitted),
        profile=tuple(ProfiledPoint(plan(row[0]), *row[1:]) for row in record.profile.rows),
        stored=StoredRecord(
            *(stored.parameters, stored.hidden, stored.layers, stored.sequence),
            bandwidths=Bandwidths(*stored.bandwidths),
            fitted=Parameters(*stored.fitted),
            sizes={gpus: tuple(where) for gpus, where in stored.sizes},
            plans={where: plan(word) for where, word in stored.plans.items()},
        ),
        provenance=facts.provenance,
        notes=tuple(record.notes),
    )


def _measurements(record: _Record) -> Iterator[Measurement]:
    """Yield a record's measurements in the order of the file; 0 seconds = out of memory."""
    groups: list[tuple[int | None, _TIMES]] = [(None, record.measured)]
    groups += record.measured_with_threads.items()
    for threads, times in groups:
        for word, seconds in times.items():
            plan = Plan.parse(word)
            for placement, time in seconds.items():
                yield Measurement(plan, placement, time or None, threads)
