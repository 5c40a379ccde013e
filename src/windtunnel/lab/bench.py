"""`Bench`: a trace on which setups are flown, with what was flown last kept at hand."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.lab.setup import ANY, AUTO, Setup
from windtunnel.predictors.features import numbers
from windtunnel.sim.flight import REJECTED
from windtunnel.study.offered_load import at_load, offered_load
from windtunnel.study.resolving import conditions_of, resolved
from windtunnel.study.simulate import fly

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions
    from windtunnel.traces.trace import Trace

#: Runs that are kept; going back to one costs nothing.
KEPT = 32
#: Load that equal nodes are given at first where the trace tells no cluster of its own.
_BUSY = 0.9
_GPUS = 8


@dataclass(frozen=True)
class Source:
    """How the trace was asked for, so that a study can ask for it again.

    Attributes:
        trace: name or path.
        reading: options of `windtunnel.open_trace` that were given.
        seed: of everything random, the trace included.
        cluster: the words that named one for the trace; None = it has its own, or none.
    """

    trace: str
    reading: dict[str, Any]
    seed: int = 0
    cluster: str | None = None


class Bench:
    """Flies setups of one trace.

    Safe to use from several threads: sessions of a page share it.

    Args:
        trace: the trace.
        source: how it was asked for.
        site: what every run is flown under that no control says: those of a site file.

    Attributes:
        first: where the controls stand at first: at the trace's own cluster, or one it fills.
    """

    def __init__(self, trace: Trace, source: Source, site: Conditions | None = None) -> None:
        self.trace = trace
        self.source = source
        self.site = conditions_of(None) if site is None else site
        self.first = self._first_setup()
        self._kept: OrderedDict[Setup, Outcome] = OrderedDict()
        self._loads: dict[Setup, tuple[float, np.ndarray]] = {}
        self._lock = threading.Lock()

    def gpu_types(self) -> tuple[str, ...]:
        """Return the GPU types that nodes may have: the cluster's and those that jobs name."""
        own = () if self.trace.cluster is None else self.trace.cluster.gpu_types
        named = self.trace.jobs["gpu_type"].unique().drop_null().to_pylist()
        words = [word.strip() for text in named for word in text.split("|") if word.strip()]
        return (ANY, *dict.fromkeys((*own, *sorted(words))))

    def is_own(self, setup: Setup) -> bool:
        """Return whether a setup flies on the cluster that comes with the trace, or was given."""
        at = (setup.nodes, setup.gpus_per_node, setup.gpu_type)
        first = (self.first.nodes, self.first.gpus_per_node, self.first.gpu_type)
        return self.trace.cluster is not None and at == first

    def cluster(self, setup: Setup) -> ClusterSpec:
        """Return the cluster of a setup."""
        if self.trace.cluster is not None and self.is_own(setup):
            return self.trace.cluster
        return setup.equal_nodes()

    def fly(self, setup: Setup) -> dict[str, Outcome]:
        """Return the runs of a setup by policy: one where both policies are the same.

        Raises:
            WindtunnelError: the trace cannot be flown so; jobs that the cluster cannot hold, or
                that lack what a run needs, are rejected into the outcome instead.
        """
        flown = {}
        for run in setup.runs():
            with self._lock:
                outcome = self._kept.pop(run, None) or self._flown(run)
                self._kept[run] = outcome
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            flown[run.policies[0]] = outcome
        return flown

    def offered(self, setup: Setup) -> float | None:
        """Return the load that the jobs offer the cluster (`windtunnel.study.offered_load`).

        None where they are submitted as recorded.

        Raises:
            WindtunnelError: no load can be computed.
        """
        return None if setup.load == 1 else self._natural(setup)[0] * setup.load

    def conditions(self, setup: Setup) -> Conditions:
        """Return what the first policy's run of a setup is flown under."""
        given = self.site.having(
            cluster=self.cluster(setup),
            policy=setup.policies[0],
            queueing=None if setup.queueing == AUTO else setup.queueing,
            placement=setup.placement,
            sharing=None if setup.sharing == AUTO else setup.sharing,
            seed=self.source.seed,
            oversize="reject",
            incomplete="reject",
        )
        return resolved(given, several=True)

    def _flown(self, run: Setup) -> Outcome:
        return fly(self._jobs(run), self.conditions(run))

    def _jobs(self, run: Setup) -> pa.Table:
        load = self.offered(run)
        if load is None:
            return self.trace.jobs
        natural, flown = self._natural(run)
        return at_load(self.trace.jobs, natural, load, flown)

    def _natural(self, setup: Setup) -> tuple[float, np.ndarray]:
        """Return the load of the jobs as recorded, and which of them the cluster takes."""
        key = replace(setup, load=1.0, policies=("fifo", "fifo"), queueing=AUTO)
        if key not in self._loads:
            # A run of no length tells which jobs are rejected.
            rehearsal = fly(self.trace.jobs, self.conditions(key).having(until=0.0))
            flown: np.ndarray = np.asarray(rehearsal.flight.status != REJECTED)
            natural = offered_load(self.trace.jobs, rehearsal.cluster.num_gpus, flown)
            self._loads[key] = (natural, flown)
        return self._loads[key]

    def _first_setup(self) -> Setup:
        cluster = self.trace.cluster
        if cluster is None:
            setup = Setup(nodes=self._busy_nodes(), gpus_per_node=_GPUS)
            return setup.scheduled_by(self.site.scheduler)
        gpus = _GPUS if cluster.is_pool else max(node.gpus for node in cluster.node_types)
        kinds = cluster.gpu_types
        return Setup(
            nodes=-(-cluster.num_gpus // gpus),
            gpus_per_node=gpus,
            gpu_type=kinds[0] if len(kinds) == 1 else ANY,
        ).scheduled_by(self.site.scheduler)

    def _busy_nodes(self) -> int:
        jobs = self.trace.jobs
        gpus = np.nan_to_num(numbers(jobs, "num_gpus"))
        held = float((gpus * np.nan_to_num(numbers(jobs, "duration"))).sum())
        submit = numbers(jobs, "submit_time")
        submit = submit[~np.isnan(submit)]
        span = float(np.ptp(submit)) if len(submit) else 0.0
        wanted = held / span / _BUSY if span > 0 else 0.0
        return math.ceil(max(wanted, float(gpus.max(initial=1.0))) / _GPUS)


class _Place:
    """Where the bench stands that the page of this process shows."""

    bench: Bench | None = None


def put_up(bench: Bench) -> None:
    """Let the page of this process show a bench."""
    _Place.bench = bench


def current() -> Bench:
    """Return the bench that the page of this process shows.

    Raises:
        RuntimeError: none was put up.
    """
    if _Place.bench is None:
        raise RuntimeError("the lab's page is served by `windtunnel lab`")
    return _Place.bench
