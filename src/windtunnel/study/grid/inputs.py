"""The jobs tables and clusters that a study's runs fly: opened once, written for all workers."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.cluster.parse import parse_cluster
from windtunnel.errors import SpecError, quote
from windtunnel.study.grid.spec import OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy import PowerModel, Series
    from windtunnel.study.grid.plan import Run
    from windtunnel.study.grid.spec import Energy, Study

    #: Power, carbon and tariff that energy is accounted with.
    EnergyModels = tuple[PowerModel, Series | None, Series | None]

#: Which jobs table: label of the trace, and the seed it was made with (None = it was read).
TableKey = tuple[str, int | None]


@dataclass(frozen=True)
class MappedTable:
    """A jobs table in an Arrow file, which each worker maps into memory once.

    Attributes:
        path: the file.
    """

    path: str

    def load(self) -> pa.Table:
        """Return the table."""
        return _mapped(self.path)


@lru_cache(maxsize=8)
def _mapped(path: str) -> pa.Table:
    with pa.memory_map(path) as source:
        return pa.ipc.open_file(source).read_all()


@dataclass(frozen=True)
class Input:
    """A jobs table as the runs fly it.

    Attributes:
        path: Arrow file that holds it.
        sha256: digest of that file.
        num_jobs: rows.
        source: where it comes from.
        cluster: the trace's own cluster, where known.
        notes: what the reader of the trace noted.
    """

    path: Path
    sha256: str
    num_jobs: int
    source: str
    cluster: ClusterSpec | None
    notes: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """Return what the manifest keeps of it."""
        return {
            "sha256": self.sha256,
            "num_jobs": self.num_jobs,
            "notes": list(self.notes),
        }


def prepare(
    study: Study, keys: Iterable[TableKey], folder: Path, on_done: Callable[[str], None]
) -> dict[TableKey, Input]:
    """Open traces and write their jobs as Arrow files.

    Args:
        study: the study.
        keys: which tables are wanted.
        folder: where the files go; must exist.
        on_done: called with a trace's label after each table.

    Raises:
        WindtunnelError: a trace cannot be opened.
        OSError: a file cannot be written.
    """
    from windtunnel.traces.open import open_trace  # workers do without the readers

    entries = {entry.label: entry for entry in study.trace_entries()}
    inputs = {}
    for label, seed in keys:
        entry = entries[label]
        options = entry.reading() | ({} if seed is None else {"seed": seed})
        trace = open_trace(entry.trace, **options)
        path, digest = _write(trace.jobs, folder)
        about = trace.metadata
        inputs[label, seed] = Input(
            path, digest, trace.jobs.num_rows, about.source, trace.cluster, about.notes
        )
        on_done(label)
    return inputs


def _write(table: pa.Table, folder: Path) -> tuple[Path, str]:
    """Write a table as an Arrow file called by its digest; return both."""
    temporary = folder / f".{os.getpid()}.part"
    try:
        with pa.ipc.new_file(temporary, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        with temporary.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        path = folder / f"{digest[:32]}.arrow"
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path, digest


def energy_facts(energy: Energy | None) -> dict[str, str]:
    """Return the digests of the files that energy is accounted with: name -> SHA-256 or number.

    Raises:
        OSError: a file cannot be read.
    """
    found = {}
    for name in ("power", "carbon", "tariff"):
        value = None if energy is None else getattr(energy, name)
        if isinstance(value, str) and not _is_number(value):
            found[name] = hashlib.sha256(Path(value).read_bytes()).hexdigest()
        elif value is not None:
            found[name] = str(value)
    return found


def energy_models(energy: Energy | None) -> EnergyModels | None:
    """Return the models that a study's ``energy`` names: power, carbon, tariff; None for none.

    Raises:
        SpecError, TraceError: a file is wrong.
    """
    if energy is None:
        return None
    from windtunnel.energy import PowerModel
    from windtunnel.energy.series_files import CARBON, TARIFF, Quantity, parse_series

    def series(value: float | str | None, name: str, of: Quantity) -> Series | None:
        return None if value is None else parse_series(value, of, name=name)

    return (
        PowerModel.from_toml(energy.power),
        series(energy.carbon, "$.energy.carbon", CARBON),
        series(energy.tariff, "$.energy.tariff", TARIFF),
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def cluster_of(run: Run, given: Input) -> ClusterSpec:
    """Return the cluster a run flies on.

    Raises:
        SpecError: it is the trace's own, and the trace does not know it.
    """
    if run.cluster != OWN:
        return parse_cluster(run.cluster)
    if given.cluster is None:
        raise SpecError(
            "$.clusters",
            f"the trace {quote(run.trace)} does not say on what cluster it ran; name one.",
        )
    return given.cluster
