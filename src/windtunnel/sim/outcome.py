"""`Outcome`: what a run produced, with the measures that are functions of it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from windtunnel import saved
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.notebook import as_html
from windtunnel.sim import metrics as measures
from windtunnel.sim import timeline
from windtunnel.sim.elastic.stretches import Stretches
from windtunnel.sim.flight import Flight, Interruptions, PowerRecord
from windtunnel.sim.flown import Flown
from windtunnel.sim.observe import allocation as held
from windtunnel.sim.observe import decisions, finish_time, fragments, goodput
from windtunnel.sim.observe import domains as spread
from windtunnel.sim.observe import shares as fairness_of_shares
from windtunnel.sim.observe import starvation as starving
from windtunnel.sim.observe import topology_losses as losses
from windtunnel.sim.own_metrics import measured
from windtunnel.sim.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa


#: What a notebook shows of a run.
_SHOWN = (
    *("num_jobs", "num_finished", "avg_wait", "p90_wait", "max_wait", "avg_jct"),
    *("utilization", "makespan", "num_preemptions"),
)


class Outcome(Flown):
    """The result of one run: what was flown (`Flown`), and its measures.

    Most of these are functions of a run of their own, and say more where they are.

    Where tables are taken, it is one, of what happened to every job (`Flown.table`):
    ``pl.DataFrame(outcome)``, ``pd.DataFrame(outcome)``, ``duckdb.sql("from outcome")``.
    """

    def metrics(self, *more: Any) -> dict[str, Any]:
        """Return the run in numbers; see `windtunnel.sim.metrics.summary` for each of them.

        And `windtunnel.sim.observe.shares.summary`: Jain's index over users and virtual clusters;
        `windtunnel.sim.observe.goodput.summary`: goodput, ETTR and MTTF of a run with failures;
        with a model of power ``energy_j`` (J), and ``carbon_kg`` and ``cost`` of it, None where
        not asked for; and the metrics of one's own that the run was asked for.

        Args:
            more: further metrics of one's own: functions of an outcome, or their names.

        Raises:
            SpecError: there is no such metric, or it returned no number.
        """
        found = measures.summary(self) | self._jain | self._goodput | self.energy
        return found | self.own | measured(self, more)

    # By group of jobs.
    by_size = measures.by_size
    by_vc = measures.by_vc
    goodput_by_size = goodput.by_size
    losses_by_cause = goodput.by_cause
    allocation = held.allocation
    allocation_by_type = held.allocation_by_type
    shares = fairness_of_shares.shares
    jain_index = fairness_of_shares.jain_index
    finish_time_fairness = finish_time.finish_time_fairness
    fairness = finish_time.summary
    starvation = starving.starvation
    overtaken = starving.overtaken

    # Over time.
    utilization = timeline.utilization
    oldest_waiting = starving.oldest_waiting
    fragmentation = fragments.fragmentation

    def queue(self, by: str | None = None) -> pa.Table:
        """Return waiting jobs and GPUs over time; see `windtunnel.sim.timeline.queue`.

        ``by`` a property of jobs (``size``, ``vc`` ...): see
        `windtunnel.sim.observe.allocation.queue`.
        """
        return timeline.queue(self) if by is None else held.queue(self, by)

    # By level of the topology.
    domains = spread.domains
    topology_losses = losses.topology_losses

    @cached_property
    def decisions(self) -> pa.Table:
        """What was decided about every job, and why; see `windtunnel.sim.observe.decisions`.

        Raises:
            SpecError: the run was not recorded.
        """
        return decisions.decisions(self)

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
        return fairness_of_shares.summary(self)

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
