"""A workload: a training job and what was measured of it on one kind of GPU.

The epochs that a run needs depend on the batch size alone, the time and the power of an epoch on
batch size, power limit and GPU (Zeus, NSDI'23, section 4): the two files are joined here by what
is trained and the batch size, and nothing else.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from windtunnel.checked import checked_count
from windtunnel.energy.quirks import Sweep, quirks_of
from windtunnel.energy.readers import IDENTITY
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

#: Targets are written with few decimals: two that agree to this share are the same target.
_SAME_TARGET = 1e-9


@dataclass(frozen=True)
class TrainingJob:
    """A job that is trained again and again.

    Attributes:
        dataset: what it learns from; also the workload's name.
        network: what is trained.
        optimizer: how (adadelta, adamw, adam).
        target_metric: validation metric at which a run is done, as the training file has it.
        max_epochs: a run that has not reached the target by then has failed.
        default_batch_size: what its owner would use, before it is cut to what the GPU can hold.
    """

    dataset: str
    network: str
    optimizer: str
    target_metric: float
    max_epochs: int
    default_batch_size: int

    def __post_init__(self) -> None:
        for name in ("max_epochs", "default_batch_size"):
            checked_count(name, getattr(self, name))
        if not np.isfinite(self.target_metric):
            raise SpecError("target_metric", "expected a number.")


#: The six jobs of the Zeus paper, as its group experiment specifies them.
PUBLISHED_JOBS: dict[str, TrainingJob] = {
    job.dataset: job
    for job in (
        TrainingJob("cifar100", "shufflenetv2", "adadelta", 0.60, 100, 1024),
        TrainingJob("imagenet", "resnet50", "adadelta", 0.65, 100, 256),
        TrainingJob("librispeech", "deepspeech2", "adamw", 40.0, 16, 256),
        TrainingJob("movielens-1m", "ncf", "adam", 0.41, 100, 1024),
        TrainingJob("squad", "bert_base_uncased", "adamw", 84.0, 6, 32),
        TrainingJob("sentiment140", "bert_base_uncased", "adamw", 0.84, 10, 128),
    )
}


@dataclass(frozen=True)
class Workload:
    """A training job with its measurements on one kind of GPU.

    Attributes:
        job: what is trained, until when.
        gpu: name of the kind of GPU.
        max_power_w: largest power limit in that GPU's file; makes time and energy comparable.
        default_batch_size: the job's, cut to the largest size measured on this GPU.
        epochs: batch size, ascending -> epochs of each run to the target, float64 in the file's
            order, NaN = never reached.
        sweeps: batch size, ascending -> its power limits; the same sizes as ``epochs``.
        notes: what a reader of results must know about the data, a sentence each.
    """

    job: TrainingJob
    gpu: str
    max_power_w: float
    default_batch_size: int
    epochs: Mapping[int, np.ndarray]
    sweeps: Mapping[int, Sweep]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.default_batch_size not in self.sweeps:
            raise SpecError(
                "default batch size",
                f"found {self.default_batch_size}; {self.name} was measured with "
                f"{', '.join(map(str, self.batch_sizes))}.",
            )

    @property
    def name(self) -> str:
        """``cifar100 on v100``."""
        return f"{self.job.dataset} on {self.gpu}"

    @cached_property
    def batch_sizes(self) -> tuple[int, ...]:
        """Batch sizes with both runs and an epoch's measurements, ascending."""
        return tuple(self.sweeps)

    @cached_property
    def power_limits(self) -> tuple[int, ...]:
        """Every power limit that some batch size was measured at, W, ascending."""
        return tuple(sorted({p for sweep in self.sweeps.values() for p in sweep.power_limits}))

    @cached_property
    def feasible_batch_sizes(self) -> tuple[int, ...]:
        """Batch sizes of which every run reached the target within ``max_epochs``."""
        return tuple(b for b, e in self.epochs.items() if bool(np.all(e <= self.job.max_epochs)))

    @property
    def paper_recurrences(self) -> int:
        """Recurrences in the paper's experiments: twice the number of configurations, 2 |B| |P|."""
        return 2 * len(self.batch_sizes) * len(self.power_limits)

    def mean_epochs(self, batch_size: int) -> float:
        """Return the mean number of epochs to the target, NaN where a run never reached it."""
        return float(np.mean(self.epochs[batch_size]))


def join(train: pa.Table, power: pa.Table, job: TrainingJob, gpu: str) -> Workload:
    """Join the measurements of a job on one kind of GPU.

    Args:
        train: from `windtunnel.energy.readers.read_train`.
        power: from `windtunnel.energy.readers.read_power`, of this GPU.
        job: what is trained.
        gpu: name of the kind of GPU.

    Raises:
        SpecError: a file knows nothing of the job or the target, no batch size is in both, or the
            default batch size is not among those.
    """
    runs, epochs_of_power = _rows(train, job, "training"), _rows(power, job, "power")
    sizes = sorted(set(runs["batch_size"].to_pylist()))
    runs = _at_target(runs, job)
    epochs = _by_size(runs)
    sweeps = sweeps_of(epochs_of_power)
    joint = sorted(epochs.keys() & sweeps.keys())
    if not joint:
        raise SpecError(
            f"{job.dataset} on {gpu}",
            f"no batch size is in both files: runs have {_listed(epochs)}, epochs "
            f"{_listed(sweeps)}.",
        )
    dropped = sorted((set(sizes) | sweeps.keys()) - set(joint))
    largest = pc.max(epochs_of_power["batch_size"]).as_py()
    notes = []
    if largest < job.default_batch_size:
        notes.append(
            f"The default batch size {job.default_batch_size} is cut to {largest}, the largest "
            f"measured on {gpu}."
        )
    if dropped:
        notes.append(f"Batch sizes in one of the two files only are left out: {_listed(dropped)}.")
    sweeps = {size: sweeps[size] for size in joint}
    epochs = {size: epochs[size] for size in joint}
    return Workload(
        job=job,
        gpu=gpu,
        max_power_w=float(pc.max(power["power_limit"]).as_py()),
        default_batch_size=min(job.default_batch_size, largest),
        epochs=epochs,
        sweeps=sweeps,
        notes=(*notes, *quirks_of(epochs, sweeps, job.max_epochs)),
    )


def _listed(sizes: Iterable[int]) -> str:
    return ", ".join(map(str, sizes)) or "none"


def _rows(table: pa.Table, job: TrainingJob, file: str) -> pa.Table:
    """Return the rows of a job; where it has none, the error names the nearest."""
    chosen = table
    for column in IDENTITY:
        wanted = getattr(job, column)
        rows = chosen.filter(pc.equal(chosen[column], wanted))
        if rows.num_rows == 0:
            known = sorted(set(chosen[column].to_pylist()))
            raise SpecError.unknown(f"{column} in the {file} file", wanted, known)
        chosen = rows
    return chosen


def _at_target(runs: pa.Table, job: TrainingJob) -> pa.Table:
    targets = np.asarray(runs["target_metric"].to_numpy())
    at = np.isclose(targets, job.target_metric, rtol=_SAME_TARGET, atol=0.0)
    if not at.any():
        known = ", ".join(f"{target:g}" for target in np.unique(targets))
        raise SpecError(
            "target", f"found {job.target_metric:g}; runs of {job.dataset} have {known}."
        )
    return runs.filter(at)


def _by_size(runs: pa.Table) -> dict[int, np.ndarray]:
    """Return batch size -> epochs in the file's order, sizes ascending."""
    sizes = np.asarray(runs["batch_size"].to_numpy())
    epochs = np.asarray(pc.fill_null(runs["target_epoch"], float("nan")).to_numpy())
    return {int(size): epochs[sizes == size] for size in np.unique(sizes)}


def sweeps_of(rows: pa.Table) -> dict[int, Sweep]:
    """Return batch size -> sweep of one workload's rows, sizes ascending, limits descending."""
    columns = ("batch_size", "power_limit", "time_per_epoch", "average_power")
    by_size: dict[int, list[tuple[int, float, float]]] = {}
    for size, *measured in sorted(
        zip(*(rows[name].to_pylist() for name in columns), strict=True),
        key=lambda row: (row[0], -row[1]),
    ):
        by_size.setdefault(size, []).append(tuple(measured))
    return {
        size: Sweep(*(tuple(column) for column in zip(*measured, strict=True)))
        for size, measured in by_size.items()
    }


def job_named(
    dataset: str,
    train: pa.Table,
    known_jobs: Mapping[str, TrainingJob] = PUBLISHED_JOBS,
    **changes: float | None,
) -> TrainingJob:
    """Return the training job of a dataset, with the user's changes.

    Args:
        dataset: ``DATASET`` or ``DATASET/NETWORK/OPTIMIZER``.
        train: the training file's rows.
        known_jobs: dataset -> job whose numbers hold where the user gives none.
        changes: ``target_metric``, ``max_epochs``, ``default_batch_size``; None = not given.

    Raises:
        SpecError: the file does not know it, it is ambiguous, or something is needed that neither
            the user gives nor the paper's jobs have.
    """
    name, _, rest = dataset.partition("/")
    rows = train.filter(pc.equal(train["dataset"], name))
    known = sorted(set(train["dataset"].to_pylist()))
    if rows.num_rows == 0:
        raise SpecError.unknown("--workload", name, known)
    published = known_jobs.get(name)
    network, optimizer = _what_is_trained(name, rest, rows, published)
    given = {} if published is None else asdict(published)
    given |= {key: value for key, value in changes.items() if value is not None}
    for key, option in (
        ("target_metric", "--target"),
        ("max_epochs", "--max-epochs"),
        ("default_batch_size", "--default-batch-size"),
    ):
        if key not in given:
            raise SpecError(option, f"is needed: {quote(name)} is none of {', '.join(known_jobs)}.")
    return TrainingJob(
        name,
        network,
        optimizer,
        float(given["target_metric"]),
        int(given["max_epochs"]),
        int(given["default_batch_size"]),
    )


def _what_is_trained(
    name: str, rest: str, rows: pa.Table, published: TrainingJob | None
) -> tuple[str, str]:
    """Return network and optimizer of a dataset's rows.

    Args:
        name: the dataset.
        rest: ``NETWORK/OPTIMIZER`` or nothing; then the published job's count, or the only ones.
        rows: the dataset's.
        published: the published job of this dataset.
    """
    columns = (rows[column].to_pylist() for column in IDENTITY[1:])
    known: list[tuple[str, str]] = sorted(set(zip(*columns, strict=True)))
    chosen = [pair for pair in known if not rest or "/".join(pair) == rest]
    if len(chosen) > 1 and published is not None:
        chosen = [pair for pair in chosen if pair == (published.network, published.optimizer)]
    if len(chosen) != 1:
        words = ", ".join("/".join((name, *pair)) for pair in known)
        raise SpecError("--workload", f"found {quote(name)}; expected one of {words}.")
    return chosen[0]
