"""Evaluation decoupled from what surrounds it: a trial coordinator on the leftovers.

After the coordinator of Acme (Hu et al., NSDI'24, section 6.2). A trial of a language model loads
the model, infers, and computes its metric; while it loads and computes, its GPUs idle. Here the
model stays in the memory of a node that loaded it, for the trials of the same batch that come
there; the metric is computed on CPUs, after the GPUs are given back; and trials fill what other
jobs leave, the longest of a batch first, as lengths are known from earlier checkpoints.

What part of a trial is which is a parameter: the trace tells run times as a whole.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

from windtunnel.checked import checked_choice, checked_number
from windtunnel.errors import SpecError
from windtunnel.sim.contract import Policy, Start
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.cluster.free import Where
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem


class DecoupledEvaluation(Policy):
    """Other jobs first, in order of arrival, whoever fits; trials of evaluation in the leftovers.

    A trial of recorded length d holds its GPUs for d x (1 - metrics), and for d x loading x
    (1 - warm) less on nodes that have the model. With all three 0 it runs as recorded: what is
    left is the packing.

    Args:
        workload: the jobs' ``workload`` that is evaluation.
        batch: column of the jobs table that trials of one model have in common; a trial without a
            value shares with nobody.
        loading: share of a trial's run that loads the model and prepares data.
        metrics: share that computes the metric; it needs no GPU, and CPUs enough are there.
        warm: share of the loading that is left where the node has the model.
        keep: seconds for which a node has a model after the last trial with it began there.

    Raises:
        SpecError: a share is not from 0 to 1, or they come to 1 or more.
    """

    name = "decoupled-evaluation"

    def __init__(
        self,
        workload: str = "Eval",
        batch: str = "user",
        *,
        loading: float = 0.3,
        metrics: float = 0.2,
        warm: float = 0.1,
        keep: float | str = "1h",
    ) -> None:
        self.workload, self.batch = str(workload), str(batch)
        self.loading, self.metrics = _share("loading", loading), _share("metrics", metrics)
        self.warm, self.keep = _share("warm", warm), seconds("keep", keep)
        if self.loading + self.metrics >= 1:
            found = f"found loading and metrics of {self.loading + self.metrics:g}"
            raise SpecError("metrics", f"{found} together; expected less than 1.")

    @property
    def label(self) -> str:
        """The policy's name, with the parameters that are not the default ones."""
        if ":" in self.name:  # as it was asked for
            return self.name
        words = [
            f":{name}={getattr(self, name):g}"
            for name, usual in (("loading", 0.3), ("metrics", 0.2), ("warm", 0.1), ("keep", 3600))
            if getattr(self, name) != usual
        ]
        words += [f":batch={self.batch}"] if self.batch != "user" else []
        words += [f":workload={self.workload}"] if self.workload != "Eval" else []
        return self.name + "".join(words)

    def for_run(self, problem: Problem) -> Policy:
        """Return the policy with no model on any node.

        Raises:
            SpecError: the jobs have no such column.
        """
        known = problem.jobs.table.column_names
        checked_choice(f"{self.name}.batch", self.batch, known)
        flown = copy.copy(self)
        flown.begin(problem)
        return flown

    def begin(self, problem: Problem) -> None:
        """Forget which nodes have which models, and see what the cluster is made of."""
        #: (node, model) -> when it is loaded, when a trial with it began there last, s.
        self._models: dict[tuple[int, Any], tuple[float, float]] = {}
        self._has_nodes = not problem.is_pool
        self._plain = self._has_nodes and not problem.devices
        self._types = problem.types

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Start]:
        """Start other jobs, then trials on warm nodes, then trials anywhere."""
        trials: list[JobView] = []
        for job in queue.startable:
            if job.workload == self.workload:
                trials.append(job)
            else:
                yield Start(job)
        first: dict[Any, int] = {}
        for job in trials:
            first.setdefault(self._model_of(job), len(first))
        trials.sort(key=lambda job: (first[self._model_of(job)], -job.duration))
        refused: set[int] = set()
        for job in trials:
            kind = cluster.demand_class(job)
            if kind in refused:
                continue
            where = self._warm_place(job, now, cluster) or cluster.fit(job)
            if where is None:
                refused.add(kind)
            else:
                yield Start(job, where, self._rate(job, where, now))

    def _model_of(self, job: JobView) -> Any:
        name = getattr(job, self.batch)
        return job.job_id if name is None else name

    def _is_warm(self, node: int, model: Any, now: float) -> bool:
        loaded, last = self._models.get((node, model), (math.inf, -math.inf))
        return loaded <= now <= last + self.keep

    def _warm_place(self, job: JobView, now: float, cluster: Any) -> Where | None:
        """Return the fullest node that has a trial's model and room for all of it.

        It is of the GPU type that the trial would get anyway: which it accepts, has quota of, and
        power for.
        """
        if not self._plain:
            return None
        model, gpus = self._model_of(job), job.num_gpus
        free = cluster.free_by_node
        allowed = cluster.fit(job)
        if not allowed or len(allowed) > 1 or gpus != int(gpus):
            return None
        found = [
            (free[node], node)
            for node in range(len(free))
            if free[node] >= gpus
            and self._types[node] == self._types[allowed[0][0]]
            and self._is_warm(node, model, now)
        ]
        return [(min(found)[1], int(gpus))] if found else None

    def _rate(self, job: JobView, where: Where, now: float) -> float:
        """Return how fast a trial is there, and note the model on its nodes."""
        model = self._model_of(job)
        nodes = [entry[0] for entry in where] if self._has_nodes else []
        is_warm = bool(nodes) and all(self._is_warm(node, model, now) for node in nodes)
        saved = self.loading * (1 - self.warm) if is_warm else 0.0
        load_time = self.loading * job.duration
        for node in nodes:
            loaded, last = self._models.get((node, model), (math.inf, -math.inf))
            kept = loaded if now <= last + self.keep else math.inf
            self._models[node, model] = min(kept, now + load_time), now
        return 1 / (1 - self.metrics - saved)


def _share(name: str, given: float) -> float:
    return checked_number(name, given, "a share from 0 to 1", least=0, most=1)
