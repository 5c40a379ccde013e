"""Shockwave's measured speeds: of each model on V100s, by batch size and GPUs of the gang."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.throughput.measured import ThroughputTable

#: The clusters that were measured.
CLUSTERS: tuple[str, ...] = ("tacc", "wisr")
#: (model, GPUs) -> batch size -> steps per second of the gang; 0 = never measured.
BatchSpeeds = dict[tuple[str, int], dict[int, float]]
_JOB_TYPE = re.compile(r"(?P<model>.+) \(batch size (?P<size>\d+)\)")


def split_job_type(text: str) -> tuple[str, int] | None:
    """Return the model and batch size that a job type names; None = it names no batch size.

    >>> split_job_type("ResNet-18 (batch size 32)")
    ('ResNet-18', 32)
    """
    found = _JOB_TYPE.fullmatch(text)
    return None if found is None else (found["model"], int(found["size"]))


@lru_cache(maxsize=2)
def shockwave_speeds(cluster: str = "tacc") -> Mapping[tuple[str, int], Mapping[int, float]]:
    """Return the speeds that were measured on a cluster: ``tacc`` or ``wisr``.

    Raises:
        SpecError: no such cluster.

    >>> shockwave_speeds()["LM", 1][10]
    94.91094148
    """
    if cluster not in CLUSTERS:
        raise SpecError.unknown("throughputs", cluster, CLUSTERS)
    raw = resources.files("windtunnel.throughput").joinpath("shockwave.toml").read_text("utf-8")
    speeds: BatchSpeeds = {}
    for family in tomllib.loads(raw)["families"]:
        for size, by_gpus in family["speeds"].items():
            for gpus, of in by_gpus.items():
                known = speeds.setdefault((family["name"], int(gpus)), {})
                known[int(size)] = float(of[CLUSTERS.index(cluster)])
    return speeds


def by_batch_size(table: ThroughputTable, gpu_type: str = "v100") -> BatchSpeeds:
    """Return the speeds of a table in Gavel's layout on one GPU type, by batch size.

    Raises:
        SpecError: the table does not know the GPU type.
    """
    if gpu_type not in table.alone:
        raise SpecError.unknown("throughputs: GPU type", gpu_type, table.gpu_types)
    speeds: BatchSpeeds = {}
    for (name, gpus), speed in table.alone[gpu_type].items():
        found = split_job_type(name)
        if found is not None:
            speeds.setdefault((found[0], gpus), {})[found[1]] = speed
    return speeds
