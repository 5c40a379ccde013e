"""`JobSpeeds`: the work of a table's jobs, and how fast each does it on every GPU type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import numeric_column

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.throughput.measured import ThroughputTable

#: Suffix of the tables of gangs that are spread over nodes.
SPREAD = "_unconsolidated"
#: The GPU type of a cluster that names none.
NAMELESS = ""


@dataclass(frozen=True)
class JobSpeeds:
    """The work of jobs, and their speeds.

    Attributes:
        column: of the jobs table that says the work: ``total_steps``, or ``duration`` in seconds.
        steps: work of each job; shape (rows,).
        alone: steps per second on each GPU type, 0 = cannot run there; shape (rows, types).
        spread: the same with the gang's GPUs on several nodes.
        kinds: row of each job in ``pairs``; shape (rows,), int.
        pairs: steps per second of two jobs on the same GPUs; shape (kinds, kinds, types, 2). None =
            jobs never share.
    """

    column: str
    steps: np.ndarray
    alone: np.ndarray
    spread: np.ndarray
    kinds: np.ndarray
    pairs: np.ndarray | None = None

    def where(self, accepted: np.ndarray) -> JobSpeeds:
        """Return the speeds of jobs alone where they accept a type; shape (rows, types)."""
        return replace(self, alone=self.alone * accepted, spread=self.spread * accepted)

    def paired(self, accepted: np.ndarray) -> JobSpeeds:
        """Return the speeds of pairs on the types that both accept; shape (rows, types).

        Jobs are then of one kind if they accept the same types, too.
        """
        if self.pairs is None or accepted.all():
            return self
        found, parted = np.unique(
            np.column_stack([self.kinds, accepted]), axis=0, return_inverse=True
        )
        before, able = found[:, 0], found[:, 1:] > 0
        both = able[:, None, :, None] & able[None, :, :, None]
        pairs = self.pairs[np.ix_(before, before)] * both
        return replace(self, kinds=parted.ravel(), pairs=pairs)


def job_speeds(
    table: pa.Table,
    gangs: np.ndarray,
    types: tuple[str, ...],
    speeds: ThroughputTable,
    notes: list[str],
    *,
    on_nodes: bool,
    packed: bool,
) -> JobSpeeds:
    """Return the speeds of jobs, whatever types they accept.

    Args:
        table: jobs table.
        gangs: GPUs of each job, shape (rows,).
        types: GPU types of the cluster.
        speeds: measured speeds by ``template`` and GPUs.
        notes: what a reader of the numbers must know is added to it.
        on_nodes: whether gangs can be spread over nodes.
        packed: whether pairs of jobs share GPUs.

    Raises:
        SpecError: GPUs without a type, or of one that the throughput table does not know.
    """
    measured = {"total_steps", "template"} <= set(table.column_names)
    if measured and table["total_steps"].null_count < max(len(table), 1):
        steps = numeric_column(table, "total_steps", "steps")
        names = _names_in(speeds, types)
        kinds, alone, spread, pairs = _measured(table, gangs, speeds, names)
        if on_nodes:
            notes += _spread_notes(speeds, names)
        shared = pairs if packed else None
        return JobSpeeds("total_steps", steps, alone[kinds], spread[kinds], kinds, shared)
    notes.append(
        "The jobs have no steps: each runs equally fast on every GPU type that it accepts."
    )
    same = np.ones((len(table), len(types)))
    return JobSpeeds("duration", numbers(table, "duration"), same, same, np.zeros(len(table), int))


def _names_in(speeds: ThroughputTable, types: tuple[str, ...]) -> list[str]:
    """Return the throughput table's own spelling of the cluster's GPU types."""
    if types == (NAMELESS,):
        raise SpecError(
            "cluster", "measured speeds are by GPU type: name that of every node: v100:8,k80:24"
        )
    spelt = {name.lower(): name for name in speeds.gpu_types}
    for name in types:
        if name.lower() not in spelt:
            raise SpecError.unknown("cluster: GPU type", name, speeds.gpu_types)
    return [spelt[name.lower()] for name in types]


def _measured(
    table: pa.Table, gangs: np.ndarray, speeds: ThroughputTable, names: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return each job's kind, and speeds by kind: alone, spread (kinds, types), and of pairs.

    A job type that was not measured is the last kind, which runs nowhere.
    """
    models = table["template"].to_pylist()
    keys = list(zip(models, np.nan_to_num(gangs).tolist(), strict=True))
    found = sorted({key for key in keys if key in speeds.job_types_known})
    number = {key: at for at, key in enumerate(found)}
    kinds = np.array([number.get(key, len(found)) for key in keys], int)
    shape = (len(found) + 1, len(names))
    alone, spread = np.zeros(shape), np.zeros(shape)
    pairs = np.zeros((len(found) + 1, *shape, 2))
    for kind, key in enumerate(found):
        for at, name in enumerate(names):
            alone[kind, at] = speeds.alone[name].get(key, 0.0)
            apart = speeds.alone.get(name + SPREAD, {}).get(key)
            spread[kind, at] = alone[kind, at] if apart is None or key[1] == 1 else apart
            for mate, other in enumerate(found):
                if other[1] == key[1]:
                    pairs[kind, mate, at] = speeds.pair_speeds(key, other, name)
    return kinds, alone, spread, pairs


def _spread_notes(speeds: ThroughputTable, names: list[str]) -> list[str]:
    unknown = [name for name in names if name + SPREAD not in speeds.gpu_types]
    if not unknown:
        return []
    where = ", ".join(unknown)
    lacking = f"The throughput table has no speeds of gangs spread over nodes on {where}"
    return [f"{lacking}: they run as fast as on one node."]
