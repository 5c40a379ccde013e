"""Readers of measured training iterations: ours, and the tables that Morphling's artifact has.

Ours is a CSV with a row a measured point:

``plan, placement, iteration_time`` (s; 0 = out of memory); where known ``cpu_threads`` (a GPU) and
the phases ``forward_time`` (one GPU's samples, once), ``sync_time`` (backward and communication),
``update_time`` (optimizer), all in seconds; and, the same in every row, what is known of the model:
`FACTS`. The published ``*.placements.csv`` names these ``exec_plan, iter_time, forward,
overlap_sync, optimize`` and mixes seconds and milliseconds; the published profile is a pair of
files, ``X.config.csv`` and ``X.data.csv``, of which either may be named.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError, TraceError
from windtunnel.throughput.made import MeasuredPoints, MeasuredSteps
from windtunnel.throughput.options import parse_placement
from windtunnel.throughput.plans import OFFLOAD_CPUS, Plan
from windtunnel.throughput.tables import Measurement, ProfiledPoint
from windtunnel.traces.tabular import TextTable, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from windtunnel.throughput.options import Shape

#: Columns of measured steps: a GPU's micro-batch, seconds of a step and of its synchronisation.
STEPS = ("nodes", "num_gpus", "local_batch", "step_time", "sync_time")
#: Columns of the job that they are of, the same in every row; in examples.
LIMITS = ("first_batch", "largest_batch", "least_local", "most_local", "noise_scale")
#: Columns that say something of the model, the same in every row; bandwidths in GB/s.
FACTS = (
    "global_batch_size", "parameters", "hidden", "layers", "sequence", "pcie", "nvlink", "network",
    "gpus_per_card", "gpu_memory_gib",
)  # fmt: skip
_WHOLE = frozenset(FACTS[:5]) | {"gpus_per_card"}
#: Published names of our columns.
_OTHER_NAMES = {
    "exec_plan": "plan",
    "iter_time": "iteration_time",
    "forward": "forward_time",
    "overlap_sync": "sync_time",
    "optimize": "update_time",
}
_PHASES = ("forward_time", "sync_time", "update_time")
_COLUMNS = ("plan", "placement", "iteration_time", "cpu_threads", *_PHASES, *FACTS)
#: Published ``zero_type`` -> plan.
_ZERO_TYPES = {0: "ga", 1: "zero-offload", 2: "zero-dp"}
#: No time, size or bandwidth is beyond these, in whatever unit.
_LEAST, _MOST = 1e-9, 1e15
#: Phases that sum up to so many times the iteration are milliseconds.
_MILLISECONDS = 20.0


def read_points(path: str | Path) -> MeasuredPoints:
    """Read measured points of a model.

    Args:
        path: CSV, plain or gzip, in one of the layouts above.

    Raises:
        TraceError: it cannot be read, a cell is wrong, or a point stands there twice.
    """
    pair = _pair(Path(path))
    return _read_profile(*pair) if pair else _read_table(read_text(path))


def _read_table(text: TextTable) -> MeasuredPoints:
    found = [_OTHER_NAMES.get(name, name) for name in text.table.column_names]
    for name, own in zip(text.table.column_names, found, strict=True):
        if own not in _COLUMNS or found.count(own) > 1:
            hint = "Each may stand there once."
            raise TraceError(text.file, f"one of {', '.join(_COLUMNS)}", column=name, hint=hint)
    text = TextTable(text.file, text.table.rename_columns(found), text.lines)
    text.require("plan", "placement", "iteration_time")
    plans = _parsed(text, "plan", Plan.parse)
    shapes = _parsed(text, "placement", parse_placement)
    times = _numbers(text, "iteration_time", "seconds >= 0; 0 = out of memory", zero=True)
    threads = _numbers(text, "cpu_threads", "a whole number of CPU threads > 0", whole=True)
    phases = {name: _numbers(text, name, "seconds >= 0", zero=True) for name in _PHASES}
    placements = [str(cell).strip() for cell in text.text("placement").to_pylist()]
    rows: list[Measurement] = []
    profile, lines = [], []
    seen: set[tuple[Plan, Shape, float | None]] = set()
    for index, (plan, shape) in enumerate(zip(plans, shapes, strict=True)):
        line, time, at = int(text.lines[index]), times[index], threads[index]
        if time is None:
            raise TraceError(text.file, "seconds", row=line, column="iteration_time", value="")
        if plan.num_gpus not in {None, sum(shape)}:
            expected = f"{plan.num_gpus} GPUs, which plan {plan.name} needs"
            raise TraceError(
                text.file, expected, row=line, column="placement", value=placements[index]
            )
        if (plan, shape, at) in seen:
            raise TraceError(
                text.file,
                "each plan and placement once",
                row=line,
                column="placement",
                value=placements[index],
            )
        seen.add((plan, shape, at))
        own = None if at is None else int(at)
        rows.append(Measurement(plan, placements[index], time or None, own))
        if time and len(shape) == 1 and plan.family != "3d":
            parts = [phases[name][index] or None for name in _PHASES]
            profile.append(_profiled(plan, shape, own, parts, time))
            lines.append(line)
    assumed = any(row.plan.family == "zero-offload" and row.threads is None for row in rows)
    return MeasuredPoints(
        tuple(rows), tuple(profile), tuple(lines), _facts(text), threads_assumed=assumed
    )


def _profiled(
    plan: Plan, shape: Shape, threads: int | None, parts: list[float | None], time: float
) -> ProfiledPoint:
    """Return a point in milliseconds; phases may be in either unit, see `_MILLISECONDS`."""
    unit = 1.0 if sum(part or 0.0 for part in parts) > _MILLISECONDS * time else 1000.0
    usual = OFFLOAD_CPUS if plan.family == "zero-offload" else 1
    forward, sync, update = (None if part is None else part * unit for part in parts)
    return ProfiledPoint(plan, sum(shape), threads or usual, forward, sync, update, 1000 * time)


def read_steps(path: str | Path) -> MeasuredSteps | None:
    """Read measured steps of a job that tunes its batch size; None = the table is of no such.

    Args:
        path: CSV, plain or gzip, with the columns `STEPS` and, the same in every row, `LIMITS`.

    Raises:
        TraceError: it cannot be read, a cell is wrong, or a column is missing.
    """
    text = read_text(path)
    if "local_batch" not in text.table.column_names:
        return None
    text.require(*STEPS, *LIMITS)
    limits = _facts(text, LIMITS, frozenset(LIMITS) - {"noise_scale"})
    sizes = [_numbers(text, name, "a whole number > 0", whole=True) for name in STEPS[:3]]
    times = [_numbers(text, name, "seconds >= 0", zero=True) for name in STEPS[3:]]
    found: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
    for line, *cells in zip(text.lines, *sizes, *times, strict=True):
        given = [cell for cell in cells if cell is not None]
        if len(given) < len(STEPS):
            raise TraceError(text.file, f"a number in each of {', '.join(STEPS)}", row=int(line))
        nodes, gpus, local, step, sync = given
        if not sync < step:
            expected = f"fewer seconds than the step's {step:g}"
            raise TraceError(text.file, expected, row=int(line), column="sync_time", value=sync)
        if gpus < nodes:
            expected = f"at least {nodes:g} GPUs, one a node"
            raise TraceError(text.file, expected, row=int(line), column="num_gpus", value=gpus)
        found.setdefault((int(nodes), int(gpus), int(local)), []).append((step, sync))
    missing = [name for name in LIMITS if name not in limits]
    if missing or not found:
        raise TraceError(text.file, "a row, and a number", column=(missing or ["num_gpus"])[0])
    means = {key: tuple(np.mean(times, axis=0).tolist()) for key, times in found.items()}
    return MeasuredSteps(means, limits)


def _parsed(text: TextTable, name: str, parse: Callable[[str], Any]) -> list[Any]:
    """Return a column's cells as ``parse`` understands them."""
    parsed = []
    for cell, line in zip(text.text(name).to_pylist(), text.lines, strict=True):
        try:
            parsed.append(parse(cell or ""))
        except SpecError as error:
            message = str(error).removeprefix(f"{error.path}: ")
            expected = f"a {name}"
            raise TraceError(
                text.file, expected, row=int(line), column=name, value=cell or "", hint=message
            ) from error
    return parsed


def _numbers(
    text: TextTable, name: str, what: str, *, zero: bool = False, whole: bool = False
) -> list[float | None]:
    """Return a column's numbers, null where it is empty or absent."""
    if name not in text.table.column_names:
        return [None] * text.num_rows
    column = text.integers(name, what=what) if whole else text.floats(name, what=what)
    values: list[float | None] = column.to_pylist()
    for value, line in zip(values, text.lines, strict=True):
        if value is not None and not (_LEAST <= value <= _MOST or (zero and value == 0)):
            raise TraceError(text.file, what, row=int(line), column=name, value=value)
    return values


def _facts(
    text: TextTable, names: Sequence[str] = FACTS, whole: frozenset[str] = _WHOLE
) -> dict[str, float]:
    """Return what the file says of the model."""
    facts: dict[str, float] = {}
    for name in names:
        values = _numbers(text, name, "a number > 0", whole=name in whole)
        for value, line in zip(values, text.lines, strict=True):
            if value is not None and facts.setdefault(name, value) != value:
                expected = f"{facts[name]:g} as in the rows before"
                raise TraceError(text.file, expected, row=int(line), column=name, value=value)
    return facts


def _pair(path: Path) -> tuple[Path, Path] | None:
    """Return the published profile's two files, if ``path`` names one of them."""
    for ending in (".config.csv", ".data.csv"):
        if path.name.endswith(ending):
            stem = path.name.removesuffix(ending)
            return path.with_name(f"{stem}.config.csv"), path.with_name(f"{stem}.data.csv")
    return None


def _read_profile(config: Path, data: Path) -> MeasuredPoints:
    """Read the published profile; milliseconds, row i of one file belongs to row i of the other."""
    settings, times = read_text(config), read_text(data)
    if settings.num_rows != times.num_rows:
        raise TraceError(times.file, f"{settings.num_rows} rows, as in {config.name}")
    whole = {
        name: _numbers(settings, name, "a whole number", zero=name == "zero_type", whole=True)
        for name in ("nodes", "gpus", "num_cpu_threads", "zero_type")
    }
    for name in (*whole, "parameter_size"):
        settings.require(name)
    for name in ("forward_time", "Tcc", "Topt", "iter_time"):
        times.require(name)
    sizes = _numbers(settings, "parameter_size", "a number > 0")
    parts = [
        _numbers(times, name, "milliseconds > 0")
        for name in ("forward_time", "Tcc", "Topt", "iter_time")
    ]
    again = times.text("strategy").to_pylist() if "strategy" in times.table.column_names else []
    rows, profile = [], []
    for index in range(settings.num_rows):
        line = int(settings.lines[index])
        kind, gpus = whole["zero_type"][index], whole["gpus"][index]
        nodes, threads = whole["nodes"][index], whole["num_cpu_threads"][index]
        if kind not in _ZERO_TYPES or gpus is None or threads is None or sizes[index] != sizes[0]:
            expected = "GPUs, CPU threads, one parameter_size, and a zero_type of 0, 1 or 2"
            raise TraceError(settings.file, expected, row=line)
        if nodes != 1:
            raise TraceError(settings.file, "1 node", row=line, column="nodes", value=nodes)
        forward, sync, update, total = (part[index] for part in parts)
        if total is None:
            expected = "milliseconds"
            raise TraceError(times.file, expected, row=line, column="iter_time", value="")
        checkpointing = bool(again) and str(again[index]).startswith("2")
        plan = Plan.parse(_ZERO_TYPES[int(kind)] + "+gc" * checkpointing)
        offloads = plan.family == "zero-offload"
        placement = str(int(gpus)) + "+" * (gpus > 9)  # noqa: PLR2004 - what one digit holds
        rows.append(Measurement(plan, placement, total / 1000, int(threads) if offloads else None))
        profile.append(ProfiledPoint(plan, int(gpus), int(threads), forward, sync, update, total))
    facts = {} if sizes[0] is None else {"parameters": float(round(sizes[0] * 2**20))}
    lines = tuple(int(line) for line in times.lines)
    return MeasuredPoints(tuple(rows), tuple(profile), lines, facts)


_PREFIX = "loss_"
_STEP = "iteration"


def read_losses(path: str | Path) -> dict[str, npt.NDArray[np.float64]]:
    """Read the losses of several runs of one training.

    Args:
        path: CSV, plain or gzip: ``iteration`` (1, 2, ...) and a column ``loss_NAME`` a run.

    Returns:
        Run -> loss of each step, shape (steps,), in the file's order of columns.

    Raises:
        TraceError: it cannot be read so, a step is missing or a loss is no finite number.
    """
    text = read_text(path)
    text.require(_STEP)
    steps = text.integers(_STEP).to_pylist()
    for expected, (step, line) in enumerate(zip(steps, text.lines, strict=True), start=1):
        if step != expected:
            raise TraceError(text.file, f"{expected}", row=int(line), column=_STEP, value=step)
    names = [name for name in text.table.column_names if name.startswith(_PREFIX)]
    if not names:
        raise TraceError(text.file, "a column 'loss_NAME' for each run")
    losses = {}
    for name in names:
        column = text.floats(name, what="a loss").to_numpy(zero_copy_only=False)
        values = np.asarray(column, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            row = int(bad[0])
            raise TraceError(
                text.file,
                "a finite loss",
                row=int(text.lines[row]),
                column=name,
                value=text.text(name)[row].as_py() or "",
            )
        losses[name.removeprefix(_PREFIX)] = values
    return losses
