"""What Gavel's authors published of their simulations, as facts to stand beside ours."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Any

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
