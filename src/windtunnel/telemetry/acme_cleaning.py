"""The steps that turn Acme's raw Prometheus exports into the published telemetry files.

The rules are those of InternLM/AcmeTrace ``data/generate_utilization_pkl.ipynb``. The published
files have been through them, a raw export has not, and a file does not tell which it is: the user
does. Columns and rows without any value give no samples in either case.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from windtunnel.errors import SpecError

#: Every step, in the order in which the notebook takes them.
STEPS: tuple[str, ...] = ("unique-time", "sort", "window", "percent", "round", "strip-nic")
#: NODE_MEMORY names its nodes wrongly from 11:35:00 to 14:01:00 on 2023-07-19 (+08:00), both ends
#: included; UTC seconds since 1970.
MANGLED = (1_689_737_700.0, 1_689_746_460.0)
#: What "strip-nic" takes off the names of the InfiniBand columns: a node has one adapter.
NIC = "-mlx5_0"


def steps_of(clean: str | Collection[str]) -> frozenset[str]:
    """Return the steps that an option names.

    Args:
        clean: ``"published"`` = none, ``"raw"`` = all, or a collection of names of `STEPS`.

    Raises:
        SpecError: a name is unknown, or it is neither a name nor several.
    """
    if not isinstance(clean, str | Collection):
        raise SpecError.unknown("clean", str(clean), ("published", "raw", *STEPS))
    if isinstance(clean, str):
        if clean not in {"published", "raw"}:
            raise SpecError.unknown("clean", clean, ("published", "raw"))
        return frozenset(STEPS if clean == "raw" else ())
    for name in clean:
        if name not in STEPS:
            raise SpecError.unknown("clean", name, STEPS)
    return frozenset(clean)


def in_mangled_window(metric: str, time: np.ndarray) -> np.ndarray:
    """Return which rows of a metric have wrongly named nodes.

    Args:
        time: UTC seconds since 1970, shape (rows,).
    """
    if "NODE_MEMORY" not in metric:
        return np.zeros(len(time), bool)
    first, last = MANGLED
    inside: np.ndarray = (time >= first) & (time <= last)
    return inside


def rescaled(metric: str, values: np.ndarray, steps: frozenset[str]) -> np.ndarray:
    """Return values in the published unit: ratios as percent, rounded as the notebook rounds.

    Args:
        values: as in the raw export, any shape; changed in place.
        steps: of `STEPS`; "percent" and "round" matter here.
    """
    is_node = metric.startswith("NODE_")
    is_ratio = any(
        word in metric
        for word in (("NODE_CPU", "NODE_MEMORY") if is_node else ("ACTIVE", "OCCUPANCY"))
    )
    if "percent" in steps and is_ratio:
        values *= 100.0
    if "round" in steps:
        if is_ratio:
            np.round(values, 3, out=values)
        elif "POWER" in metric:
            np.round(values, 1, out=values)
    return values
