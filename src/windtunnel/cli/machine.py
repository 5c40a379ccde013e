"""What ``--json`` prints: runs, traces and clusters as plain data with stable keys.

Unknown numbers (None, NaN) are null, text is ASCII with escapes, so that the output is JSON for
every reader and harmless on a terminal.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

from windtunnel.plain import fields_of

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome
    from windtunnel.traces.trace import Trace


def print_json(data: Any) -> None:
    """Print one JSON value on stdout."""
    click.echo(json.dumps(plain(data), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Return ``value`` as what JSON can hold: numpy scalars unpacked, NaN and infinities null.

    >>> plain({"a": float("nan"), "b": (1, 2.5), "c": None})
    {'a': None, 'b': [1, 2.5], 'c': None}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | bool):
        return value
    item = getattr(value, "item", None)  # numpy scalars
    number = value if item is None else item()
    if isinstance(number, float):
        return number if math.isfinite(number) else None
    return number if isinstance(number, int) else str(number)


def trace_data(trace: Trace) -> dict[str, Any]:
    """Return what is known about a trace.

    Keys: ``name``, ``source``, ``licence``, ``epoch``, ``zone``, ``num_jobs``, ``rows_read``,
    ``dropped`` (reason -> rows), ``notes``, ``settings`` (what it was made with).
    """
    about = trace.metadata
    return {
        **fields_of(about, "name", "source", "licence", "epoch", "zone"),
        "num_jobs": trace.jobs.num_rows,
        **fields_of(about, "rows_read", "dropped", "notes", "settings"),
    }


def cluster_data(cluster: ClusterSpec) -> dict[str, Any]:
    """Return a cluster.

    Keys: ``name``, ``description``, ``num_gpus``, ``num_nodes``, ``is_pool``, ``node_types`` (list
    of count, gpus, gpu_type, cpus, mem_gib).
    """
    return {
        "name": cluster.name,
        "description": cluster.describe(),
        **fields_of(cluster, "num_gpus", "num_nodes", "is_pool"),
        "node_types": cluster.to_mapping()["node_types"],
    }


def run_data(outcome: Outcome) -> dict[str, Any]:
    """Return a run.

    Keys: every metric by its name; ``fairness`` (finish-time fairness in numbers), ``by_size``,
    ``by_vc`` and ``starvation`` (lists of rows), and of a run with failures ``goodput_by_size`` and
    ``losses_by_cause`` (lists of rows).
    """
    sizes, causes = outcome.goodput_by_size(), outcome.losses_by_cause()
    goodput = {"goodput_by_size": sizes.to_pylist(), "losses_by_cause": causes.to_pylist()}
    return {
        **outcome.metrics(),
        **(goodput if sizes.num_rows else {}),
        "fairness": outcome.fairness(),
        "by_size": outcome.by_size().to_pylist(),
        "by_vc": outcome.by_vc().to_pylist(),
        "starvation": outcome.starvation().to_pylist(),
    }
