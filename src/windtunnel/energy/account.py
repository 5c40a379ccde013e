"""What a run of a cluster draws, emits and costs: a pure function of its outcome.

The run's span is that of its averages: first submission to last end (`sim.metrics.horizon`). All
GPUs and hosts are powered throughout, also while disruptions take nodes out of service, but for
nodes that the run's own policy put to sleep; jobs draw what their power limits let them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.energy.cluster_power import PowerModel
from windtunnel.energy.intensity import J_PER_KWH, Series
from windtunnel.energy.power_pieces import Levels, pieces
from windtunnel.errors import SpecError, nearest, quote
from windtunnel.sim.metrics import NONE, horizon
from windtunnel.sim.observe.allocation import ANY, gpus_of, held_by_type, type_labels
from windtunnel.sim.observe.groups import job_groups, labelled
from windtunnel.sim.timeline import held_over_time, steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.energy.cluster_power import GpuPower
    from windtunnel.sim.outcome import Outcome

#: Curves are summed in whole millionths of a GPU, so that an idle cluster draws exactly idle power.
_UNITS = 1e6


@dataclass(frozen=True)
class Account:
    """Energy of a run, and what it emits and costs.

    Jobs are charged for the whole draw of the GPUs they hold; idle GPUs, hosts, and the building's
    overhead (PUE - 1 of all that) are counted apart, and not shared out.

    Attributes:
        outcome: the run.
        model: what the cluster draws, its GPU types spelt as the cluster spells them.
        carbon: g CO2eq per kWh over time; None = not asked for.
        tariff: money per kWh over time; None = not asked for.
        until: s; what the cluster draws is counted until then, where that is after the last end.
    """

    outcome: Outcome
    model: PowerModel
    carbon: Series | None = None
    tariff: Series | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        """Check that the model knows what the cluster has.

        Raises:
            SpecError: a GPU type is not described, a pool has no hosts to draw power, or it is not
                known which of several GPU types jobs of a pool were given.
        """
        cluster = self.outcome.cluster
        if self.model.host_w and cluster.is_pool:
            message = "a pool has no nodes, and so no hosts; expected 0, or a cluster of nodes"
            raise SpecError("power.host_w", message)
        if self.outcome.flight.power is not None:
            own = self.outcome.settings.get("power")
            if own is not None and self.model != PowerModel.from_mapping(own).of_cluster(cluster):
                message = "not the model that the run was flown with; its limits would not hold"
                raise SpecError("power", message)
        len(self._held)

    @cached_property
    def span(self) -> tuple[float, float]:
        """First submission and last end, or `until` where that is later, s."""
        first, last = horizon(self.outcome)
        return first, last if self.until is None else max(last, self.until)

    @cached_property
    def energy_by_job(self) -> np.ndarray:
        """Float array (n,): J that the GPUs each job held drew, jobs-table order."""
        gpus, start, end, each, _, job = self._held
        return self._per_job(job, gpus * each * (end - start))

    def amount_by_job(self, series: Series) -> np.ndarray:
        """Return what each job's energy emits or costs, shape (n,), in the series' unit."""
        gpus, start, end, each, _, job = self._held
        area = series.integral(end) - series.integral(start)
        return self._per_job(job, gpus * each * area) / J_PER_KWH

    def by(self, column: str) -> pa.Table:
        """Return energy by group of jobs, PUE not included.

        Args:
            column: ``size``, or a column of text: ``user``, ``vc``, ``workload`` ...

        Returns:
            A row a group: the column named so, ``jobs``, ``energy_j``, and where asked for
            ``carbon_kg`` and ``cost``.

        Raises:
            SpecError: there is no such grouping.
        """
        codes, labels = job_groups(self.outcome, column)
        present = np.unique(codes)

        def summed(values: np.ndarray) -> np.ndarray:
            sums: np.ndarray = np.bincount(codes, values, minlength=len(labels))[present]
            return sums

        columns: dict[str, Any] = {
            column: labelled(present, labels),
            "jobs": np.bincount(codes, minlength=len(labels))[present],
            "energy_j": summed(self.energy_by_job),
        }
        if self.carbon is not None:
            columns["carbon_kg"] = summed(self.amount_by_job(self.carbon)) / 1000
        if self.tariff is not None:
            columns["cost"] = summed(self.amount_by_job(self.tariff))
        return pa.table(columns)

    def by_type(self) -> pa.Table:
        """Return energy by the GPU type that jobs were on, PUE not included.

        Returns:
            A row a type of the cluster, in its order: ``gpu_type`` (``(none)`` where the cluster
            tells no types apart), ``jobs_j`` and ``idle_j`` of its GPUs. Where a pool does not tell
            which type jobs were given, what they draw stands under ``(any)``, and so does all that
            is idle: ``idle_j`` of each type is null then.
        """
        labels = type_labels(self.outcome)
        gpus, start, end, each, idle, _, code = self._held_by_type
        held = gpus * (end - start)
        count = len(labels)
        if (code == count).any():
            jobs_j = np.bincount(code, held * each, minlength=count + 1)
            idle_j: list[float | None] = [*[None] * count, self.summary()["idle_j"]]
            return pa.table({"gpu_type": [*labels, ANY], "jobs_j": jobs_j, "idle_j": idle_j})
        jobs_j = np.bincount(code, held * each, minlength=count)
        first, last = self.span
        sizes = np.array([gpus_of(self.outcome, label) for label in labels])
        idle_w = np.array([draw.idle_w for draw in self._draws])
        by_type = sizes * idle_w * (last - first)
        by_type -= np.bincount(code, held * idle, minlength=count)
        node, asleep, woken = self.asleep
        slept = self._idle_by_node[node] * (woken - asleep)
        by_type -= np.bincount(self._types_of_nodes[node], slept, minlength=count)
        return pa.table({"gpu_type": labels, "jobs_j": jobs_j, "idle_j": by_type})

    @cached_property
    def power(self) -> pa.Table:
        """Power over time, exact: a row an instant at which it changes, until the span's end.

        Columns: ``time`` (s), ``jobs_w``, ``idle_w``, ``host_w``, ``overhead_w`` and their sum
        ``power_w``; each holds until the next row, the last row's until the end of the span.
        """
        gpus, start, end, each, idle, _ = self._held
        first, last = self.span
        jobs = Levels(np.stack([each, idle], axis=1), np.round(gpus * _UNITS), start, end)
        node, asleep, woken = self.asleep
        nodes = Levels(
            np.stack([self._idle_by_node, self._saved_by_node], axis=1)[node],
            np.ones(len(node)),
            asleep,
            woken,
        )
        time, *counts = steps(
            np.concatenate([[first], jobs.times, nodes.times]),
            *jobs.changes(1, len(nodes.times)),
            *nodes.changes(1 + len(jobs.times), 0),
        )
        jobs_w, held_idle_w = jobs.watts(counts[: jobs.count], _UNITS, len(time))
        slept_idle_w, slept_host_w = nodes.watts(counts[jobs.count :], 1.0, len(time))
        inside = (time >= first) & (time < last)
        jobs_w, time = jobs_w[inside], time[inside]
        idle_w = self._all_idle_w - held_idle_w[inside] - slept_idle_w[inside]
        host_w = self._host_w - slept_host_w[inside]
        overhead_w = (self.model.pue - 1) * (jobs_w + idle_w + host_w)
        return pa.table(
            {
                "time": time,
                "jobs_w": jobs_w,
                "idle_w": idle_w,
                "host_w": host_w,
                "overhead_w": overhead_w,
                "power_w": jobs_w + idle_w + host_w + overhead_w,
            }
        )

    def summary(self) -> dict[str, float | None]:
        """Return the run in numbers.

        Keys: ``energy_j``, its parts ``jobs_j``, ``idle_j``, ``host_j`` and ``overhead_j`` (which
        sum to it), ``mean_power_w`` and ``peak_power_w`` of the building (null if the span is
        empty), ``carbon_kg`` and ``cost`` of all energy (null where not asked for).
        """
        first, last = self.span
        gpus, start, end, _, idle, _ = self._held
        jobs_j = float(self.energy_by_job.sum())
        node, asleep, woken = self.asleep
        idle_j = self._all_idle_w * (last - first) - float((gpus * idle * (end - start)).sum())
        idle_j -= float((self._idle_by_node[node] * (woken - asleep)).sum())
        host_j = self._host_w * (last - first)
        host_j -= float((self._saved_by_node[node] * (woken - asleep)).sum())
        overhead_j = (self.model.pue - 1) * (jobs_j + idle_j + host_j)
        energy_j = jobs_j + idle_j + host_j + overhead_j
        grams = None if self.carbon is None else self._amount(self.carbon)
        peak = self.power["power_w"].to_numpy()
        return {
            "energy_j": energy_j,
            "jobs_j": jobs_j,
            "idle_j": idle_j,
            "host_j": host_j,
            "overhead_j": overhead_j,
            "mean_power_w": energy_j / (last - first) if last > first else None,
            "peak_power_w": float(peak.max()) if len(peak) else None,
            "carbon_kg": None if grams is None else grams / 1000,
            "cost": None if self.tariff is None else self._amount(self.tariff),
        }

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the numbers must know, one sentence each."""
        there = self.outcome.jobs["workload"].unique().drop_null().to_pylist()
        sentences = [
            f"The power model names the kind of work {quote(name)}, which no job has."
            f"{nearest(name, there)}"
            for name in self.model.named_work
            if name not in there
        ]
        for name, series in (("carbon intensity", self.carbon), ("tariff", self.tariff)):
            if series is not None and not series.covers(*self.span):
                sentences.append(
                    f"The {name}'s rows do not cover the run; they repeat every "
                    f"{series.period:g} s."
                )
        if self.cap is not None and not self.cap.covers(*self.span):
            every = f"{self.cap.period:g} s"
            sentences.append(f"The cap's rows do not cover the run; they repeat every {every}.")
        if self.outcome.flight.interruptions is not None:
            sentences.append(
                "Energy: nodes out of service are counted as powered, their GPUs idle."
            )
        return tuple(sentences)

    def _amount(self, series: Series) -> float:
        """Return what all energy emits or costs: the power curve times the series."""
        power = self.power
        edges = np.append(power["time"].to_numpy(), self.span[1])
        areas = np.diff(series.integral(edges))
        return float((power["power_w"].to_numpy() * areas[: power.num_rows]).sum()) / J_PER_KWH

    def _per_job(self, job: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.bincount(job, values, minlength=len(self.outcome.jobs))

    @cached_property
    def _draws(self) -> list[GpuPower]:
        """What a GPU of each type of the cluster draws."""
        labels = type_labels(self.outcome)
        return [self.model.gpu(None if label == NONE else label) for label in labels]

    @cached_property
    def _all_idle_w(self) -> float:
        """W if no GPU were held."""
        labels = type_labels(self.outcome)
        draws = zip(labels, self._draws, strict=True)
        return sum(gpus_of(self.outcome, label) * draw.idle_w for label, draw in draws)

    @cached_property
    def _host_w(self) -> float:
        return self.model.host_w * self.outcome.cluster.num_nodes if self.model.host_w else 0.0

    @property
    def _held(self) -> tuple[np.ndarray, ...]:
        """What is held: GPUs, start, end (s), W and idle W of each GPU, job's row; shapes (e,)."""
        return self._held_by_type[:-1]

    @cached_property
    def _held_by_type(self) -> tuple[np.ndarray, ...]:
        """What `_held` tells, then each entry's GPU type, an index; one more where not known."""
        flight = self.outcome.flight
        draws = self._draws
        stay, code, gpus = held_by_type(self.outcome, type_labels(self.outcome))
        kinds, table = self._tables
        unlike = len(set(draws)) > 1 or any(rows != table[0] for rows in table)
        if unlike and (code == len(draws)).any():
            message = (
                "a pool of several GPU types does not tell which a job was given; expected "
                "the same watts for all of them, or a cluster of nodes"
            )
            raise SpecError("power.gpus", message)
        entry, start, end, gpus = held_over_time(self.outcome, stay, gpus)
        stay, code = stay[entry], code[entry]
        last = horizon(self.outcome)[1]
        end = np.where(np.isnan(end), np.maximum(last, start), end)
        entry, start, end, level = pieces(flight.power, stay, start, end)
        code, gpus, job = code[entry], gpus[entry], flight.segment_job[stay[entry]]
        alike = np.minimum(code, len(draws) - 1)  # of an unknown type: all draw the same
        idle = np.array([draw.idle_w for draw in draws])[alike]
        # A job over several types has one level; a type with fewer limits is at its last.
        depth = np.array([[len(rows) for rows in of_type] for of_type in table])
        kind = kinds[job]
        level = np.minimum(level, depth[alike, kind] - 1)
        watts = np.zeros((*depth.shape, int(depth.max())))
        for t, of_type in enumerate(table):
            for k, rows in enumerate(of_type):
                watts[t, k, : len(rows)] = rows
        return gpus, start, end, watts[alike, kind, level], idle, job, code

    @cached_property
    def _tables(self) -> tuple[np.ndarray, list[list[list[float]]]]:
        """Each job's kind of work, shape (n,), and W by type, kind and power limit."""
        codes, labels = job_groups(self.outcome, "workload")
        types = [None if label == NONE else label for label in type_labels(self.outcome)]
        kinds = [None if label == NONE else label for label in labels]
        return codes, [
            [[level.power_w for level in self.model.levels(gpu_type, kind)] for kind in kinds]
            for gpu_type in types
        ]

    @cached_property
    def cap(self) -> Series | None:
        """The facility's cap over time, W; None = the run had none."""
        cap = self.outcome.settings.get("power_cap")
        if cap is None:
            return None
        rows = np.array(cap["rows"], dtype=np.float64)
        return Series(rows[:, 0], rows[:, 1], "power_cap")

    @cached_property
    def asleep(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Node, start and end (s) of each sleep within the span, shapes (a,)."""
        record = self.outcome.flight.power
        if record is None:
            return np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)
        first, last = self.span
        end = np.where(np.isnan(record.asleep_end), last, record.asleep_end)
        return (
            record.asleep_node,
            np.clip(record.asleep_start, first, last),
            np.clip(end, first, last),
        )

    @cached_property
    def _idle_by_node(self) -> np.ndarray:
        """Float array (nodes,): W of each node's GPUs while none is held."""
        kinds = self.outcome.cluster.node_types
        watts = [
            kind.gpus * self.model.gpu(kind.gpu_type).idle_w if kind.gpus else 0.0 for kind in kinds
        ]
        return np.repeat(np.array(watts), [kind.count for kind in kinds])

    @cached_property
    def _types_of_nodes(self) -> np.ndarray:
        """Int array (nodes,): each node's GPU type, an index; 0 where it has no GPUs."""
        labels, kinds = type_labels(self.outcome), self.outcome.cluster.node_types
        code = [labels.index(kind.gpu_type or NONE) if kind.gpus else 0 for kind in kinds]
        return np.repeat(np.array(code, dtype=np.int64), [kind.count for kind in kinds])

    @property
    def saved_w(self) -> np.ndarray:
        """Float array (nodes,): W that a node draws less asleep than idle, without overhead."""
        saved: np.ndarray = self._idle_by_node + self._saved_by_node
        return saved

    @cached_property
    def _saved_by_node(self) -> np.ndarray:
        """Float array (nodes,): W of each host less what the sleeping node draws."""
        return np.full(len(self._idle_by_node), self.model.host_w - self.model.asleep_w)


def account(
    outcome: Outcome,
    model: PowerModel,
    *,
    carbon: Series | None = None,
    tariff: Series | None = None,
    until: float | None = None,
) -> Account:
    """Return the energy of any run; see `Account`.

    Runs that are compared are accounted for until one instant (`shared_end`): else the idle cluster
    is charged for as long as a run takes, and one that shifts its jobs seems to draw more.

    Raises:
        SpecError: the model does not describe what the cluster has, or describes what it has not.
    """
    return Account(outcome, model.of_cluster(outcome.cluster), carbon, tariff, until)


def shared_end(outcomes: Iterable[Outcome]) -> float:
    """Return the last instant that anything ended in any of these runs, s."""
    return max(horizon(outcome)[1] for outcome in outcomes)
