"""Profiles: what a request costs on each stage of each parallel configuration of each model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, TraceError
from windtunnel.serving.parallel import Parallel
from windtunnel.serving.text_files import csv_rows, number

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEYS = ("dp", "op", "pp", "batch_size", "stage")
_REQUIRED = ("model", *_KEYS, "stage_latency_s")


@dataclass(frozen=True)
class Stages:
    """A model on one parallel configuration, at one batch size.

    Attributes:
        latency: time of a batch on each stage, shape (pp,), s.
        weight_bytes: weights on each GPU of a stage, shape (pp,); NaN where unknown.
        activation_bytes: activations on each GPU of a stage, shape (pp,); NaN where unknown.
    """

    latency: np.ndarray
    weight_bytes: np.ndarray
    activation_bytes: np.ndarray


class Profile:
    """Latency and memory of models by configuration and batch size.

    Args:
        name: what it is called in messages.
        entries: (model, configuration, batch size) -> stages.

    Raises:
        SpecError: there are no entries.
    """

    def __init__(self, name: str, entries: Mapping[tuple[str, Parallel, int], Stages]) -> None:
        if not entries:
            raise SpecError(name, "the profile is empty.")
        self.name = name
        self._entries = dict(entries)
        self.models = tuple(dict.fromkeys(model for model, _, _ in self._entries))

    def check_model(self, model: str, path: str = "model") -> None:
        """Raise unless the profile knows a model.

        Raises:
            SpecError: it does not; the nearest is suggested.
        """
        checked_choice(path, model, self.models)

    def configurations(self, model: str) -> tuple[Parallel, ...]:
        """Return the configurations that a model was profiled on, in the profile's order."""
        self.check_model(model)
        return tuple(dict.fromkeys(p for name, p, _ in self._entries if name == model))

    def has(self, model: str, parallel: Parallel, batch: int = 1) -> bool:
        """Return whether there is an entry."""
        return (model, parallel, batch) in self._entries

    def batches(self, model: str, parallel: Parallel) -> tuple[int, ...]:
        """Return the batch sizes profiled, ascending."""
        return tuple(sorted(b for name, p, b in self._entries if (name, p) == (model, parallel)))

    def stages(self, model: str, parallel: Parallel, batch: int = 1) -> Stages:
        """Return an entry.

        Raises:
            SpecError: the profile does not know the model, or not on this configuration.
        """
        self.check_model(model)
        found = self._entries.get((model, parallel, batch))
        if found is None:
            known = ", ".join(p.name for p in self.configurations(model))
            raise SpecError(
                f"profile {self.name}",
                f"no entry for {model} on {parallel.name} at batch size {batch}; the model has "
                f"{known}.",
            )
        return found

    def weight(self, model: str, parallel: Parallel) -> float:
        """Return a model's memory in a group: the weights of its heaviest stage, bytes a GPU.

        Activations and caches are left out, as the source does. Infinite where the model was not
        profiled on the configuration: it does not fit.

        Raises:
            SpecError: the profile does not know the model, or not its weights.
        """
        self.check_model(model)
        entry = self._entries.get((model, parallel, 1))
        heaviest = math.inf if entry is None else float(entry.weight_bytes.max())
        if math.isnan(heaviest):
            raise SpecError(
                f"profile {self.name}",
                f"no memory of {model} on {parallel.name}; expected stage_weight_bytes.",
            )
        return heaviest

    def latency(self, model: str) -> float:
        """Return the latency of one request on one GPU, s: what SLO scales refer to.

        Raises:
            SpecError: the model was not profiled on one GPU.
        """
        return float(self.stages(model, Parallel()).latency.sum())


def read_profile(path: str | Path) -> Profile:
    """Read a profile from CSV, plain or gzipped.

    Columns: ``model``, ``dp``, ``op``, ``pp``, ``batch_size``, ``stage`` (0 .. pp - 1),
    ``stage_latency_s`` and, where known, ``stage_weight_bytes`` and ``stage_act_bytes`` for each
    GPU of the stage. Others are ignored.

    Raises:
        TraceError: a column or a stage is missing, one is there twice, or a value is wrong.
        OSError: the file cannot be read.
    """
    file = Path(path)
    rows: dict[tuple[str, Parallel, int], dict[int, tuple[float, float, float]]] = {}
    lines: dict[tuple[str, Parallel, int], int] = {}
    for line, row in csv_rows(file, _REQUIRED):
        dp, op, pp, batch, stage = (_whole(file, line, row, key) for key in _KEYS)
        key = (row["model"], Parallel(dp, op, pp), batch)
        stages = rows.setdefault(key, {})
        lines.setdefault(key, line)
        if stage in stages or stage >= pp:
            raise TraceError(
                str(file), f"each stage 0 to {pp - 1} once", row=line, column="stage", value=stage
            )
        stages[stage] = (
            number(file, line, "stage_latency_s", row["stage_latency_s"]),
            _bytes(file, line, row, "stage_weight_bytes"),
            _bytes(file, line, row, "stage_act_bytes"),
        )
    if not rows:
        raise TraceError(str(file), "at least one row")
    entries = {}
    for key, stages in rows.items():
        if len(stages) < key[1].pp:
            raise TraceError(
                str(file), f"{key[1].pp} stages of {key[0]} on {key[1].name}", row=lines[key]
            )
        columns = np.array([stages[stage] for stage in sorted(stages)]).T
        entries[key] = Stages(*columns)
    return Profile(file.name, entries)


def _whole(file: Path, line: int, row: dict[str, str], column: str) -> int:
    text = row[column]
    least = 0 if column == "stage" else 1
    if not text.strip().isdecimal() or int(text) < least:
        raise TraceError(
            str(file), f"a whole number >= {least}", row=line, column=column, value=text
        )
    return int(text)


def _bytes(file: Path, line: int, row: dict[str, str], column: str) -> float:
    """Return memory; NaN where the profile does not tell it."""
    return number(file, line, column, row[column]) if row.get(column) else math.nan
