"""`Outcome`: what a run produced, with the measures that are functions of it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from windtunnel import saved
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.notebook import as_html
from windtunnel.sim import metrics, timeline
from windtunnel.sim.elastic.stretches import Stretches
from windtunnel.sim.flight import Flight, Interruptions, PowerRecord
from windtunnel.sim.flown import Flown
from windtunnel.sim.observe import (
    allocation,
    decisions,
    domains,
    finish_time,
    fragments,
    goodput,
    shares,
    starvation,
    topology_losses,
)
from windtunnel.sim.own_metrics import measured
from windtunnel.sim.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import numpy as np
    import pyarrow as pa

    from windtunnel.sim.fragmentation import TargetWorkload

#: What a notebook shows of a run.
_SHOWN = (
    *("num_jobs", "num_finished", "avg_wait", "p90_wait", "max_wait", "avg_jct"),
    *("utilization", "makespan", "num_preemptions"),
)


class Outcome(Flown):
    """The result of one run: what was flown (`Flown`), and its measures.

    Where tables are taken, it is one, of what happened to every job (`Flown.table`):
    ``pl.DataFrame(outcome)``, ``pd.DataFrame(outcome)``, ``duckdb.sql("from outcome")``.
    """

    def metrics(self, *more: Any) -> dict[str, Any]:
        """Return the run in numbers; see `windtunnel.sim.metrics.summary` for each of them.

        And `windtunnel.sim.observe.shares.summary`: Jain's index over users and virtual clusters;
        `windtunnel.sim.observe.goodput.summary`: goodput, ETTR and MTTF of a run with failures;
        and the metrics of one's own that the run was asked for.

        Args:
            more: further metrics of one's own: functions of an outcome, or their names.

        Raises:
            SpecError: there is no such metric, or it returned no number.
        """
        found = metrics.summary(self) | self._jain | self._goodput
        return found | self.own | measured(self, more)

    def by_size(self) -> pa.Table:
        """Return waits and completions by job size; see `windtunnel.sim.metrics.by_size`."""
        return metrics.by_size(self)

    def goodput_by_size(self) -> pa.Table:
        """Return goodput, ETTR and MTTF by job size; see `windtunnel.sim.observe.goodput`."""
        return goodput.by_size(self)

    def losses_by_cause(self) -> pa.Table:
        """Return what each cause of stops cost; see `windtunnel.sim.observe.goodput.by_cause`."""
        return goodput.by_cause(self)

    def by_vc(self) -> pa.Table:
        """Return waits and completions by virtual cluster; see `windtunnel.sim.metrics.by_vc`."""
        return metrics.by_vc(self)

    def utilization(self) -> pa.Table:
        """Return GPUs in use over time; see `windtunnel.sim.timeline.utilization`."""
        return timeline.utilization(self)

    def queue(self, by: str | None = None) -> pa.Table:
        """Return waiting jobs and GPUs over time; see `windtunnel.sim.timeline.queue`.

        ``by`` a property of jobs (``size``, ``vc`` ...): see
        `windtunnel.sim.observe.allocation.queue`.
        """
        return timeline.queue(self) if by is None else allocation.queue(self, by)

    def allocation(self, by: str = "vc") -> pa.Table:
        """Return GPUs in use by group of jobs; see `windtunnel.sim.observe.allocation`."""
        return allocation.allocation(self, by)

    def allocation_by_type(self) -> pa.Table:
        """Return GPUs in use by GPU type; see `windtunnel.sim.observe.allocation`."""
        return allocation.allocation_by_type(self)

    def shares(self, by: str = "vc") -> pa.Table:
        """Return what each group held of the cluster; see `windtunnel.sim.observe.shares`."""
        return shares.shares(self, by)

    def jain_index(
        self, by: str = "user", *, per: str | Mapping[str, float] = "demand"
    ) -> float | None:
        """Return how evenly GPU time is shared; see `windtunnel.sim.observe.shares.jain_index`."""
        return shares.jain_index(self, by, per=per)

    def finish_time_fairness(
        self, among: str = finish_time.JOBS, *, over: str = "lifetime"
    ) -> pa.Table:
        """Return each job's rho; see `windtunnel.sim.observe.finish_time`."""
        return finish_time.finish_time_fairness(self, among, over=over)

    def fairness(self, among: str = finish_time.JOBS, *, over: str = "lifetime") -> dict[str, Any]:
        """Return rho in numbers; see `windtunnel.sim.observe.finish_time.summary`."""
        return finish_time.summary(self, among, over=over)

    def starvation(self, by: str = "size") -> pa.Table:
        """Return tails of waits, and who is overtaken; see `windtunnel.sim.observe.starvation`."""
        return starvation.starvation(self, by)

    def overtaken(self) -> np.ndarray:
        """Return by how many jobs each was overtaken; see `windtunnel.sim.observe.starvation`."""
        return starvation.overtaken(self)

    def oldest_waiting(self) -> pa.Table:
        """Return who waits longest over time; see `windtunnel.sim.observe.starvation`."""
        return starvation.oldest_waiting(self)

    def fragmentation(
        self,
        workload: TargetWorkload | None = None,
        *,
        weigh: str = "tasks",
        cores: bool | None = None,
    ) -> pa.Table:
        """Return how fragmented the nodes are over time; see `windtunnel.sim.observe.fragments`."""
        return fragments.fragmentation(self, workload, weigh=weigh, cores=cores)

    def domains(self) -> pa.Table:
        """Return over how many domains of each level jobs went; see `sim.observe.domains`."""
        return domains.domains(self)

    @cached_property
    def decisions(self) -> pa.Table:
        """What was decided about every job, and why; see `windtunnel.sim.observe.decisions`.

        Raises:
            SpecError: the run was not recorded.
        """
        return decisions.decisions(self)

    def topology_losses(self) -> pa.Table:
        """Return what levels cost: waits beside free GPUs, GPUs that no slice could use.

        See `sim.observe.topology_losses`.
        """
        return topology_losses.topology_losses(self)

    def save(self, path: str | Path) -> None:
        """Write the outcome to one file, which `load` reads back as it was.

        Raises:
            OSError: the file cannot be written.
        """
        saved.save(path, "outcome", self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return an outcome that `save` wrote.

        Raises:
            TraceError: the file is something else, or another version's.
        """
        found: Self = saved.load(path, "outcome", SAVED)
        return found

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield what happened to each job, by column."""
        for batch in self.table.to_batches(max_chunksize=10_000):
            yield from batch.to_pylist()

    def _repr_html_(self) -> str:
        found = self.metrics()
        title = f"{self.settings.get('policy')} on {self.cluster.describe()}"
        return as_html(title, (), [(name, found[name]) for name in _SHOWN], self.notes)

    @cached_property
    def _jain(self) -> dict[str, float | None]:
        return shares.summary(self)

    @cached_property
    def _goodput(self) -> dict[str, float | None]:
        return goodput.summary(self, self.counted)


#: What may be in a file that `Outcome.save` writes.
SAVED: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Outcome,
        Flight,
        Interruptions,
        PowerRecord,
        Stretches,
        Verdicts,
        ClusterSpec,
        NodeType,
    )
}
