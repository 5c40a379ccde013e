"""windtunnel: a wind tunnel for GPU clusters.

A trace is a set of tables. A policy turns tables into decisions. A run turns decisions into a
table. Everything we show is a function of tables.

>>> import windtunnel as wt
>>> jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
>>> wt.simulate(jobs, "pool:2", policy="fifo").metrics()["avg_jct"]
24.666666666666668

Names are imported on first use, so that ``import windtunnel`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec, NodeType
    from windtunnel.errors import (
        InfeasibleError,
        PolicyError,
        SchemaError,
        SpecError,
        TraceError,
        WindtunnelError,
    )
    from windtunnel.policies.catalogue import policy
    from windtunnel.sim.contract import Move, Policy, Preempt, Rerate, Resize, Start, Wake
    from windtunnel.sim.disruptions.spec import Disruptions
    from windtunnel.sim.jobs import Jobs, JobView
    from windtunnel.sim.outcome import Outcome
    from windtunnel.sim.slowdown import Slowdown
    from windtunnel.study.compare import Comparison, compare
    from windtunnel.study.simulate import simulate
    from windtunnel.telemetry.open import open_telemetry
    from windtunnel.telemetry.stream import Telemetry
    from windtunnel.traces.open import open_trace
    from windtunnel.traces.readers import reader
    from windtunnel.traces.trace import Trace, TraceMetadata
    from windtunnel.traces.twin.fit import fit
    from windtunnel.traces.twin.model import Twin

__version__ = "0.1.0"

#: Public name -> the module that defines it.
_HOME = {
    "ClusterSpec": "windtunnel.cluster.spec",
    "Comparison": "windtunnel.study.compare",
    "Disruptions": "windtunnel.sim.disruptions.spec",
    "InfeasibleError": "windtunnel.errors",
    "JobView": "windtunnel.sim.jobs",
    "Jobs": "windtunnel.sim.jobs",
    "Move": "windtunnel.sim.contract",
    "NodeType": "windtunnel.cluster.spec",
    "Outcome": "windtunnel.sim.outcome",
    "Policy": "windtunnel.sim.contract",
    "PolicyError": "windtunnel.errors",
    "Preempt": "windtunnel.sim.contract",
    "Rerate": "windtunnel.sim.contract",
    "Resize": "windtunnel.sim.contract",
    "SchemaError": "windtunnel.errors",
    "Slowdown": "windtunnel.sim.slowdown",
    "SpecError": "windtunnel.errors",
    "Start": "windtunnel.sim.contract",
    "Telemetry": "windtunnel.telemetry.stream",
    "Trace": "windtunnel.traces.trace",
    "TraceError": "windtunnel.errors",
    "TraceMetadata": "windtunnel.traces.trace",
    "Twin": "windtunnel.traces.twin.model",
    "Wake": "windtunnel.sim.contract",
    "WindtunnelError": "windtunnel.errors",
    "compare": "windtunnel.study.compare",
    "fit": "windtunnel.traces.twin.fit",
    "open_telemetry": "windtunnel.telemetry.open",
    "open_trace": "windtunnel.traces.open",
    "policy": "windtunnel.policies.catalogue",
    "reader": "windtunnel.traces.readers",
    "simulate": "windtunnel.study.simulate",
}

__all__ = [
    "ClusterSpec",
    "Comparison",
    "Disruptions",
    "InfeasibleError",
    "JobView",
    "Jobs",
    "Move",
    "NodeType",
    "Outcome",
    "Policy",
    "PolicyError",
    "Preempt",
    "Rerate",
    "Resize",
    "SchemaError",
    "Slowdown",
    "SpecError",
    "Start",
    "Telemetry",
    "Trace",
    "TraceError",
    "TraceMetadata",
    "Twin",
    "Wake",
    "WindtunnelError",
    "__version__",
    "compare",
    "fit",
    "open_telemetry",
    "open_trace",
    "policy",
    "reader",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in {"gavel", "testing"}:
        return importlib.import_module(f"windtunnel.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'windtunnel' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
