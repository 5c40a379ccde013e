"""Slow-downs that Gavel measured, from its throughput tables (Narayanan et al., OSDI 2020).

The file (``simulation_throughputs.json`` of stanford-futuredata/gavel) holds, for each kind of GPU,
the training steps per second of each job type alone, and of pairs that share their GPUs; kinds
called ``..._unconsolidated`` were measured with the job's GPUs spread over servers.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from windtunnel.errors import TraceError, quote
from windtunnel.sim.factor_tables import ShareFactor, SpreadFactor

#: ``('ResNet-50 (batch size 64)', 4)``: job type and GPUs.
_KEY = re.compile(r"\('(?P<job_type>[^']+)', (?P<gpus>\d+)\)")


def gavel_spread_factors(path: str | Path, gpu_type: str = "v100") -> tuple[SpreadFactor, ...]:
    """Return how fast jobs of several GPUs are spread over servers, relative to not spread.

    Job types that do not run, or were not measured, on either are left out.

    Args:
        path: Gavel's throughput table.
        gpu_type: ``v100``, ``p100`` or ``k80``.

    Raises:
        TraceError: the file is no such table, or does not know the GPU type.
    """
    together = _speeds(path, gpu_type)
    apart = _speeds(path, f"{gpu_type}_unconsolidated")
    rows = []
    for (job_type, gpus), of in together.items():
        alone, spread = of.get("null"), apart.get((job_type, gpus), {}).get("null")
        if gpus > 1 and alone and spread:
            rows.append(SpreadFactor(job_type, float(gpus), spread / alone))
    return tuple(rows)


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
    speeds = _speeds(path, gpu_type)
    rows: dict[frozenset[str], ShareFactor] = {}
    for (job_type, gpus), of in speeds.items():
        alone = of.get("null")
        for other_key, pair in of.items():
            if gpus != 1 or other_key == "null" or not alone:
                continue
            other = _key(path, other_key)
            other_alone = speeds.get(other, {}).get("null")
            if other[1] != 1 or not other_alone or not (pair[0] and pair[1]):
                continue
            factors = (min(pair[0] / alone, 1.0), min(pair[1] / other_alone, 1.0))
            row = ShareFactor(job_type, other[0], *factors)
            rows.setdefault(frozenset((job_type, other[0])), row)
    return tuple(rows.values())


def _speeds(path: str | Path, kind: str) -> dict[tuple[str, int], dict[str, Any]]:
    """Return (job type, GPUs) -> "null" or the other job's key -> speed, or both speeds."""
    try:
        tables = msgspec.json.decode(
            Path(path).read_bytes(),
            type=dict[str, dict[str, dict[str, float | tuple[float, float]]]],
        )
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(str(path), "Gavel's throughput table", hint=f"{error}.") from error
    if kind not in tables:
        expected = f"one of {', '.join(sorted(tables))}"
        raise TraceError(str(path), expected, column="GPU type", value=kind)
    return {_key(path, text): of for text, of in tables[kind].items()}


def _key(path: str | Path, text: str) -> tuple[str, int]:
    match = _KEY.fullmatch(text)
    if match is None:
        expected = "a job type and its GPUs, as in ('LM (batch size 5)', 2)"
        raise TraceError(str(path), expected, value=quote(text))
    return match["job_type"], int(match["gpus"])


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
