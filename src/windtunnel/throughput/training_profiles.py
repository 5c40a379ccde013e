"""`TrainingProfiles`: measured step times and gradient noise of applications: what a job *does*.

The tables of Pollux's simulator (petuum/adaptdl, branch ``osdi21-artifact``; Qiao et al., OSDI'21,
section 5.3): ``applications.csv``, ``placements.csv``, ``scalability.csv``, ``validation.csv`` in
one folder. They come without a licence, so none is packaged.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.errors import SpecError, TraceError, quote

#: Beyond as many nodes step times are taken as on that many.
_MOST_NODES = 16
#: Parts that are rounding: ceil(x - _ROUNDING).
_ROUNDING = 1e-8


@dataclass
class Application:
    """One application.

    Attributes:
        name: its name.
        first_batch: batch size at first, examples.
        largest_batch: the largest that it may train with.
        least_local: smallest micro-batch of a GPU.
        most_local: largest micro-batch of a GPU.
        epochs: after which it is done.
        restart_time: s that a restart costs.
        placed: run lengths on nodes -> micro-batches, ascending -> seconds a step, of which sync.
        spread: (nodes, GPUs, micro-batch, step s, sync s) of all other measurements, in order.
        batches: measured batch sizes, ascending.
        progress: end of each epoch in iterations at the first batch, (batches, epochs).
        iterations: the same in iterations at the batch, (batches, epochs).
        grad_sqr: squared norm of the gradient at the end of each epoch, (batches, epochs).
        grad_var: its variance, (batches, epochs).
    """

    name: str
    first_batch: int
    largest_batch: int
    least_local: int
    most_local: int
    epochs: int
    restart_time: float
    placed: dict[tuple[int, ...], dict[float, tuple[float, float]]]
    spread: np.ndarray
    batches: np.ndarray
    progress: np.ndarray
    iterations: np.ndarray
    grad_sqr: np.ndarray
    grad_var: np.ndarray
    _times: dict[tuple[tuple[int, ...], int], tuple[float, float]] = field(default_factory=dict)

    def step_time(self, placement: tuple[int, ...], local: int) -> tuple[float, float]:
        """Return the seconds of a step and, of these, of synchronisation.

        Args:
            placement: GPUs on each node, in the order of the nodes.
            local: micro-batch of a GPU.

        Raises:
            SpecError: that is outside of what was measured.
        """
        key = (placement, local)
        if key not in self._times:
            self._times[key] = self._looked_up(placement, local)
        return self._times[key]

    def iteration_time(self, placement: tuple[int, ...], local: int, accumulated: int) -> float:
        """Return the seconds of an iteration with steps accumulated before the one that syncs."""
        step, sync = self.step_time(placement, local)
        return step + accumulated * (step - sync)

    def largest_local(self, placement: tuple[int, ...]) -> int:
        """Return the largest micro-batch that was measured on a placement; 0 where none was.

        Of a placement that was not, it is that on as many nodes and GPUs at least.
        """
        known = self.placed.get(_turned(placement))
        if known is not None:
            return int(max(known))
        nodes, gpus = len(placement), sum(placement)
        at_least = (self.spread[:, 0] >= nodes) & (self.spread[:, 1] >= gpus)
        return int(self.spread[at_least, 2].max(initial=0))

    def noise(self, batch: int, epoch: int) -> tuple[float, float]:
        """Return the gradient's squared norm and its variance at a batch size."""
        return self._at(self.grad_sqr[:, epoch], batch), self._at(self.grad_var[:, epoch], batch)

    def gain(self, batch: int, epoch: int) -> float:
        """Return what an iteration at a batch size advances, in iterations at the first one."""
        sqr, var = self.noise(batch, epoch)
        below = var * self.first_batch / batch + sqr
        return (var + sqr) / below if below > 0 else 1.0

    def noise_scale(self, batch: int, epoch: int) -> float:
        """Return the scale of the gradient's noise, examples; inf where nothing else is left."""
        sqr, var = self.noise(batch, epoch)
        if sqr > 0:
            return self.first_batch * var / sqr
        return math.inf if var > 0 else 0.0

    def iterations_left(self, batch: int, epoch: int) -> float:
        """Return iterations at a batch from the end of an epoch on; 1 in the last epoch."""
        last = self.epochs - 1
        if epoch >= last:
            return 1.0
        of = self.iterations
        return self._at(of[:, last], batch) - self._at(of[:, epoch], batch)

    @cached_property
    def goals(self) -> np.ndarray:
        """Progress at which each epoch ends, iterations at the first batch; shape (epochs,)."""
        return np.asarray(self.progress.min(axis=0))

    def fixed_batch(self, batch: int, gpus: int, most_local: int | None = None) -> tuple[int, int]:
        """Return micro-batch and accumulated steps that make up a batch size on some GPUs.

        Args:
            batch: examples, of all GPUs together.
            gpus: how many.
            most_local: largest micro-batch of a GPU; None = the application's.
        """
        local = math.ceil(batch / gpus - _ROUNDING)
        accumulated = math.ceil(local / (most_local or self.most_local) - _ROUNDING) - 1
        if gpus == 1 and batch > self.first_batch:
            accumulated = max(1, accumulated)
        local = math.ceil(local / (accumulated + 1) - _ROUNDING)
        return min(local, self.largest_batch // (gpus * (accumulated + 1))), accumulated

    def _at(self, of_batches: np.ndarray, batch: int) -> float:
        if not self.batches[0] <= batch <= self.batches[-1]:
            low, high = self.batches[0], self.batches[-1]
            message = f"{batch} is outside of the measured {low:g} to {high:g} of {self.name}."
            raise SpecError("batch size", message)
        return _between(self.batches, of_batches, float(batch))

    def _looked_up(self, placement: tuple[int, ...], local: int) -> tuple[float, float]:
        known = self.placed.get(_turned(placement))
        if known is not None:
            sizes = np.array(list(known))
            if sizes[0] <= local <= sizes[-1]:
                times = np.array(list(known.values()))
                step, sync = (_between(sizes, times[:, k], float(local)) for k in (0, 1))
                return step, sync
        else:
            nodes = min(len(placement), _MOST_NODES)
            found = self._triangulated(nodes, sum(placement), local)
            step, sync = np.asarray(found).ravel().tolist()
            if not math.isnan(step):
                return step, sync
        where = "+".join(str(gpus) for gpus in placement)
        message = f"{self.name} was not measured with {local} examples a GPU on {where} GPUs."
        raise SpecError("micro-batch", message)

    @cached_property
    def _triangulated(self) -> Any:
        """The linear interpolation of step times over nodes, GPUs and micro-batches."""
        try:
            from scipy.interpolate import LinearNDInterpolator
        except ImportError as error:
            message = "step times between measurements need scipy: install windtunnel[ml]."
            raise SpecError("compat", message) from error
        groups: dict[tuple[int, int, float], list[tuple[float, float]]] = defaultdict(list)
        for placement, sizes in self.placed.items():
            for size, times in sizes.items():
                groups[len(placement), sum(placement), size].append(times)
        means = [
            (*key, *(math.fsum(times) / len(found) for times in zip(*found, strict=True)))
            for key, found in sorted(groups.items())
        ]
        points = np.array([*means, *self.spread.tolist()])
        return LinearNDInterpolator(points[:, :3], points[:, 3:])


def _turned(placement: tuple[int, ...]) -> tuple[int, ...]:
    """Return the rotation that measurements are kept by: the least."""
    return min(placement[k:] + placement[:k] for k in range(len(placement)))


def _between(xs: np.ndarray, ys: np.ndarray, x: float) -> float:
    """Return y at x, linear between the neighbouring points."""
    at = int(np.searchsorted(xs, x))
    if xs[at] == x:
        return float(ys[at])
    low, high = float(xs[at - 1]), float(xs[at])
    return float((ys[at - 1] * (high - x) + ys[at] * (x - low)) / (high - low))


def read_profiles(folder: str | Path) -> dict[str, Application]:
    """Read the applications of a folder of profiles, by name.

    Raises:
        TraceError: a file is missing or is no such table.
    """
    tables = {
        name: _table(Path(folder) / f"{name}.csv")
        for name in ("applications", "placements", "scalability", "validation")
    }
    file = str(Path(folder) / "applications.csv")
    try:
        return {row["application"]: _application(row, tables) for row in tables["applications"]}
    except (KeyError, ValueError) as error:
        raise TraceError(file, "the columns of Pollux's profiles", value=str(error)) from error


def read_profiles_by_type(
    folder: str | Path, base: str | Path | None = None, base_type: str = ""
) -> dict[str, dict[str, Application]]:
    """Read profiles of several GPU types, by type, then by application.

    Args:
        folder: profiles whose placements and scalability have a column ``gpu_type``.
        base: profiles of one GPU type more, without that column, which also say what applications
            there are; None = the folder does.
        base_type: what that type is called.

    Raises:
        TraceError: a file is missing or is no such table.
    """
    measured = {n: _table(Path(folder) / f"{n}.csv") for n in ("placements", "scalability")}
    others = Path(folder if base is None else base)
    shared = {name: _table(others / f"{name}.csv") for name in ("applications", "validation")}
    found = {} if base is None else {base_type: read_profiles(base)}
    file = str(Path(folder) / "placements.csv")
    try:
        for kind in dict.fromkeys(row["gpu_type"] for row in measured["placements"]):
            tables = {n: [r for r in t if r["gpu_type"] == kind] for n, t in measured.items()}
            known = {row["application"] for row in tables["placements"]}
            found[kind] = {
                row["application"]: _application(row, {**shared, **tables})
                for row in shared["applications"]
                if row["application"] in known
            }
    except (KeyError, ValueError) as error:
        raise TraceError(file, "profiles with a gpu_type", value=str(error)) from error
    return found


def _table(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise TraceError(str(path), "a table of profiles", hint=f"{reason}.") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise TraceError(str(path), "a table of profiles", hint="it is not CSV text.") from error


def _application(row: dict[str, str], tables: dict[str, list[dict[str, str]]]) -> Application:
    name = row["application"]
    of = {table: [r for r in rows if r["application"] == name] for table, rows in tables.items()}
    placed: dict[tuple[int, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    for r in of["placements"]:
        placement = tuple(int(digit) for digit in r["placement"])
        placed[placement][float(r["local_bsz"])] = (float(r["step_time"]), float(r["sync_time"]))
    columns = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
    batches = sorted({int(r["batch_size"]) for r in of["validation"]})
    if not batches or not placed:
        raise ValueError(f"no measurements of {quote(name)}")

    def by_epoch(column: str) -> np.ndarray:
        found = [[r for r in of["validation"] if int(r["batch_size"]) == b] for b in batches]
        ordered = [sorted(rows, key=lambda r: int(r["epoch"])) for rows in found]
        length = min(len(rows) for rows in ordered)
        return np.array([[float(r[column]) for r in rows[:length]] for rows in ordered])

    return Application(
        name=name,
        first_batch=int(row["init_batch_size"]),
        largest_batch=int(row["max_batch_size"]),
        least_local=int(row["min_local_bsz"]),
        most_local=int(row["max_local_bsz"]),
        epochs=int(row["max_epochs"]),
        restart_time=float(row["rescale_seconds"]),
        placed={place: dict(sorted(sizes.items())) for place, sizes in placed.items()},
        spread=np.array([[float(r[c]) for c in columns] for r in of["scalability"]]).reshape(-1, 5),
        batches=np.array(batches, float),
        progress=by_epoch("progress"),
        iterations=by_epoch("iteration"),
        grad_sqr=by_epoch("grad_sqr"),
        grad_var=by_epoch("grad_var"),
    )
