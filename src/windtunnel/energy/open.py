"""`open_workload`: one way in for measurements, published, your own, or made up."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from windtunnel.energy import synthetic
from windtunnel.energy.readers import read_power, read_train
from windtunnel.energy.workload import PUBLISHED_JOBS, Workload, job_named, join
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa

#: The published measurements' name in the registry, and what they ask for.
PUBLISHED = "zeus"
SYNTHETIC = "synthetic"
#: The GPUs of the published measurements, and of the made-up ones.
PUBLISHED_GPUS = tuple(synthetic.GPUS)
_FILE = re.compile(r"summary_(?:train|power_(?P<gpu>[\w.-]+?))\.csv(?:\.gz)?")
_MADE_UP = "The measurements are made up: they demonstrate, and prove nothing."


def open_workload(
    name: str,
    gpu: str = "v100",
    *,
    data: str | Path | None = None,
    target_metric: float | None = None,
    max_epochs: int | None = None,
    default_batch_size: int | None = None,
) -> Workload:
    """Open a workload's measurements on one kind of GPU.

    Args:
        name: a dataset of the measurements, or ``DATASET/NETWORK/OPTIMIZER``; ``synthetic`` = made
            up.
        gpu: the kind of GPU, as in ``summary_power_GPU.csv``.
        data: folder with ``summary_train.csv`` and a power file a GPU; None = the published ones,
            downloaded once where they are not on this machine.
        target_metric: instead of the paper's target.
        max_epochs: instead of the paper's.
        default_batch_size: instead of the paper's.

    Raises:
        SpecError: the measurements know no such workload, GPU, target or batch size, or a needed
            number is missing.
        TraceError: a file cannot be read, or the published ones cannot be downloaded.
    """
    made_up = name == SYNTHETIC and data is None
    if made_up:
        gpu = _spelt(gpu, synthetic.GPUS)
        train, power = synthetic.train_table(), synthetic.power_table(gpu)
    else:
        gpu, train, power = _tables(gpu, data)
    job = job_named(
        name,
        train,
        {SYNTHETIC: synthetic.JOB} if made_up else PUBLISHED_JOBS,
        target_metric=target_metric,
        max_epochs=max_epochs,
        default_batch_size=default_batch_size,
    )
    workload = join(train, power, job, gpu)
    return replace(workload, notes=(_MADE_UP, *workload.notes)) if made_up else workload


def open_published(gpu: str, *, data: str | Path | None = None) -> dict[str, Workload]:
    """Return every one of the paper's workloads that a GPU was measured with: dataset -> workload.

    Args:
        gpu: the kind of GPU.
        data: see `open_workload`.

    Raises:
        SpecError: there is no such GPU, or none of the workloads.
        TraceError: see `open_workload`.
    """
    gpu, train, power = _tables(gpu, data)
    measured = set(power["dataset"].to_pylist()) & set(train["dataset"].to_pylist())
    found = {
        name: join(train, power, job_named(name, train), gpu)
        for name in PUBLISHED_JOBS
        if name in measured
    }
    if not found:
        raise SpecError.unknown("workloads", ", ".join(sorted(measured)), PUBLISHED_JOBS)
    return found


def known_gpus(data: str | Path | None = None) -> tuple[str, ...]:
    """Return the kinds of GPU that there are measurements of, sorted.

    Args:
        data: see `open_workload`.

    Raises:
        SpecError: the folder holds no measurements.
        TraceError: the published ones cannot be downloaded.
    """
    paths = _published_paths() if data is None else _paths_in(Path(data))
    return tuple(sorted(set(paths) - {"train"}))


def _tables(gpu: str, data: str | Path | None) -> tuple[str, pa.Table, pa.Table]:
    """Return a GPU's name as it is spelt, training runs, and that GPU's epochs."""
    paths = _published_paths() if data is None else _paths_in(Path(data))
    gpu = _spelt(gpu, known_gpus(data))
    return gpu, read_train(paths["train"]), read_power(paths[gpu])


def _spelt(gpu: str, known: Collection[str]) -> str:
    """Return a GPU's name as it is known, whatever its case."""
    if gpu in known:
        return gpu
    for name in known:
        if name.lower() == gpu.lower():
            return name
    raise SpecError.unknown("--gpu", gpu, known)


def _published_paths() -> dict[str, Path]:
    """Return ``train`` and each GPU -> file."""
    from windtunnel.traces.registry import fetch

    return fetch(PUBLISHED)


def _paths_in(folder: Path) -> dict[str, Path]:
    """Return ``train`` and each GPU -> file of a folder, plain or gzip."""
    if not folder.is_dir():
        raise SpecError("--data", f"expected a folder; {quote(str(folder))} is none.")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        match = _FILE.fullmatch(path.name)
        if match is not None:
            found.setdefault(match["gpu"] or "train", path)
    if "train" not in found or len(found) == 1:
        raise SpecError(
            "--data",
            f"expected summary_train.csv and summary_power_GPU.csv in {quote(str(folder))}.",
        )
    return found
