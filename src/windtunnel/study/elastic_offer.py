"""`Offer`: what elastic jobs are offered: options on a cluster's nodes, for a penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SchemaError, SpecError, quote
from windtunnel.sim.elastic.work import PENALTY
from windtunnel.study.elastic_work import CORES_PER_GPU, WorkMaker
from windtunnel.study.option_sizes import Needs
from windtunnel.study.resume_costs import span_of, trace_costs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.elastic.scores import Elastic
    from windtunnel.sim.elastic.work import Work
    from windtunnel.sim.problem import Problem


@dataclass(frozen=True)
class Offer:
    """What elastic jobs are offered.

    Attributes:
        plain: where plain numbers of GPUs go.
        elastic: where they may run; without works.
        models: throughput models by name.
        penalty: seconds of a launch or change, or by model, the others at the default; None = the
            default: what the jobs say, else `PENALTY`.
    """

    plain: Placement
    elastic: Elastic
    models: Mapping[str, Any]
    penalty: float | Mapping[str, float] | None

    def works(self, problem: Problem) -> list[Work]:
        """Return what each flown job is, in order of arrival.

        Raises:
            SchemaError: a job's plan cannot run on its GPUs, or it fits the cluster in no way.
            SpecError: a penalty is negative, also in the jobs' own column.
        """
        maker = WorkMaker(problem, self.elastic, self.penalty, self.models)
        return [maker.work(job) for job in range(len(problem.rows))]

    def notes(self, problem: Problem, works: Sequence[Work]) -> tuple[str, ...]:
        """Return what a reader of the run must know of its jobs, which are these works."""
        rigid = sum(not work.model for work in works)
        notes = []
        paid = np.array([work.penalty for work in works])[np.isfinite(trace_costs(problem))]
        if self.penalty is None and len(paid):
            rest = "" if len(paid) == len(works) else f"; the others pay {PENALTY:g} s"
            notes.append(
                f"A launch or change costs {len(paid):,} jobs {span_of(paid)}, as the trace "
                f"says{rest}."
            )
        if rigid:
            notes.append(
                f"{rigid:,} jobs name no throughput model in their template; they run as asked for."
            )
        if any(limit is None for limit in self.elastic.cores) and rigid < len(works):
            notes.append(
                "Nodes do not say how many cores they have; options have up to "
                f"{CORES_PER_GPU} a GPU, and cores do not constrain."
            )
        return tuple(notes)

    def rejecting(self, problem: Problem) -> Problem:
        """Return the problem without the jobs that cannot run here as they were asked for."""
        maker = WorkMaker(problem, self.elastic, None, self.models)
        reasons = {}
        for job in range(len(problem.rows)):
            try:
                maker.work(job)
            except SchemaError as error:
                reasons[job] = f"expected {error.violations[0].rule}"
        return problem.without(reasons)

    def least(self, problem: Problem, policy: Policy) -> np.ndarray:
        """Return the GPUs of each job's smallest option, Float array (m,)."""
        promises = policy.keeps_promises
        usable = (work.usable(promises=promises) for work in self.works(problem))
        return np.array([min(o.num_gpus for o in options) for options in usable], float)

    def needs(self, problem: Problem, policy: Policy) -> Needs:
        """Return what jobs do with on some nodes."""
        return Needs(problem, self.elastic, self.works(problem), policy)


def models_of(given: Any) -> Mapping[str, Any]:
    """Return throughput models by name: those given, of a folder, or else the published ones."""
    if given is None:
        from windtunnel.throughput.morphling_models import THROUGHPUTS

        return THROUGHPUTS
    if isinstance(given, str | Path):
        from windtunnel.throughput.model_file import read_models

        return read_models(given)
    if not isinstance(given, Mapping):
        raise SpecError("models", f"found {quote(given)}; expected a folder, or models by name.")
    return given
