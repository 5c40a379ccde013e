"""Slow-downs that Gavel measured, from its throughput tables (Narayanan et al., OSDI 2020).

The file (``simulation_throughputs.json`` of stanford-futuredata/gavel) holds, for each kind of GPU,
the training steps per second of each job type alone, and of pairs that share their GPUs; kinds
called ``..._unconsolidated`` were measured with the job's GPUs spread over servers.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from windtunnel.errors import TraceError
from windtunnel.sim.factor_tables import ShareFactor, SpreadFactor
from windtunnel.study.gavel_speeds import SPREAD
from windtunnel.throughput.measured import read_throughputs

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.throughput.measured import JobType, ThroughputTable


def gavel_spread_factors(path: str | Path, gpu_type: str = "v100") -> tuple[SpreadFactor, ...]:
    """Return how fast jobs of several GPUs are spread over servers, relative to not spread.

    Job types that do not run, or were not measured, on either are left out.

    Args:
        path: Gavel's throughput table.
        gpu_type: ``v100``, ``p100`` or ``k80``.

    Raises:
        TraceError: the file is no such table, or does not know the GPU type.
    """
    table = read_throughputs(path)
    together, apart = (_alone(path, table, kind) for kind in (gpu_type, gpu_type + SPREAD))
    return tuple(
        SpreadFactor(job_type, float(gpus), apart[job_type, gpus] / speed)
        for (job_type, gpus), speed in together.items()
        if gpus > 1 and speed and apart.get((job_type, gpus))
    )


def gavel_share_factors(path: str | Path, gpu_type: str = "v100") -> tuple[ShareFactor, ...]:
    """Return how fast pairs of one-GPU jobs are on one GPU, relative to each alone.

    Pairs that do not fit together, or were not measured, are left out; so is the second of two
    entries for one pair. What was measured as faster than alone (two speeds of V100s in the table
    of the physical cluster, by up to 1.2 %) counts as 1.

    Args:
        path: Gavel's throughput table.
        gpu_type: ``v100``, ``p100`` or ``k80``.

    Raises:
        TraceError: the file is no such table, or does not know the GPU type.
    """
    table = read_throughputs(path)
    alone = _alone(path, table, gpu_type)
    rows: dict[frozenset[str], ShareFactor] = {}
    for pair, speeds in table.together[gpu_type].items():
        (one, gpus), (other, other_gpus) = pair
        bases = [alone.get(job) or 0.0 for job in pair]
        if gpus == other_gpus == 1 and all(bases) and all(speeds):
            factors = [min(speed / base, 1.0) for speed, base in zip(speeds, bases, strict=True)]
            rows.setdefault(frozenset((one, other)), ShareFactor(one, other, *factors))
    return tuple(rows.values())


def _alone(path: str | Path, table: ThroughputTable, kind: str) -> dict[JobType, float]:
    """Return the speeds of jobs alone on a kind of GPU, which the table must know."""
    if kind not in table.alone:
        expected = f"one of {', '.join(table.gpu_types)}"
        raise TraceError(str(path), expected, column="GPU type", value=kind)
    return table.alone[kind]


#: Policies by the names of the paper's figures.
NAMES = {
    "max_min_fairness": "LAS",
    "gandiva": "Gandiva",
    "allox": "AlloX",
    "max_min_fairness_perf": "Gavel LAS",
    "max_min_fairness_packed": "Gavel LAS, sharing",
    "fifo": "FIFO",
    "fifo_perf": "FIFO, aware",
    "fifo_packed": "FIFO, sharing",
    "finish_time_fairness": "FTF",
    "finish_time_fairness_perf": "Gavel FTF",
    "min_total_duration_perf": "Gavel makespan",
    "min_total_duration_packed": "Gavel makespan, sharing",
}
#: Published, but not reproducible: the code gives every job the last GPU type by name that is not
#: exhausted, and a repaired one lengthens completion several times. Compare shapes only.
NOT_REPRODUCIBLE = ("fifo",)


def published_jct(*, multi_gpu: bool, means: bool = False) -> dict[str, dict[float, float]]:
    """Return policy -> jobs per hour -> mean completion time in hours (figures 8 to 10).

    Args:
        multi_gpu: gangs of 1, 2, 4 and 8 GPUs.
        means: with gangs: the later figures, means of seeds 0, 1 and 2; else those of one seed.
    """
    gangs = "multi_gpu_means" if means else "multi_gpu"
    return _columns(_tables()[gangs if multi_gpu else "single_gpu"], "rates")


def published_makespan() -> dict[str, dict[float, float]]:
    """Return policy -> number of jobs -> makespan in hours, all jobs there at the start."""
    return _columns(_tables()["makespan"], "jobs")


def _columns(table: dict[str, list[float]], axis: str) -> dict[str, dict[float, float]]:
    at = [float(value) for value in table[axis]]
    return {
        name: dict(zip(at, values, strict=False)) for name, values in table.items() if name != axis
    }


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    raw = resources.files("windtunnel.study").joinpath("gavel_published.toml").read_text("utf-8")
    return tomllib.loads(raw)
