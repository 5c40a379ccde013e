"""`compare`: the same jobs on the same cluster under several policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from windtunnel import saved, schema
from windtunnel.errors import SpecError, quote
from windtunnel.notebook import as_html
from windtunnel.sim.contract import FunctionPolicy
from windtunnel.sim.outcome import SAVED
from windtunnel.study.predictions import Predictions
from windtunnel.study.resolving import conditions_of, resolved
from windtunnel.study.simulate import fly, with_energy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions
    from windtunnel.site.scheduler import Scheduler
    from windtunnel.site.site import Site
    from windtunnel.study.simulate import AnyPlacement, AnyPolicy
    from windtunnel.words import QueueingRule


def compare(
    jobs: Any,
    site: Site | ClusterSpec | str | None,
    schedulers: Iterable[Scheduler | AnyPolicy],
    *,
    queueing: QueueingRule | None = None,
    placement: AnyPlacement | None = None,
    on_done: Callable[[str], None] | None = None,
    **fields: Any,
) -> Comparison:
    """Fly the same jobs under several schedulers.

    Args:
        jobs: as for `simulate`.
        site: as for `simulate`.
        schedulers: policies (names or objects), or `Scheduler` objects, in the order to show them;
            the first is the baseline.
        queueing: of those policies that have a line; those of tier 3 have none.
        placement: of all.
        on_done: called with the label after each run (for progress bars).
        fields: further arguments of `simulate`, the same for all.

    Raises:
        SpecError: no policy, or one of them twice; and whatever `simulate` raises.
    """
    if isinstance(schedulers, str):
        message = f"found {quote(schedulers)}; expected several, such as ['fifo', 'sjf']."
        raise SpecError("policies", message)
    named = {"queueing": queueing, "placement": placement}
    fields |= {name: value for name, value in named.items() if value is not None}
    chosen = [resolved(conditions_of(site, one, **fields), several=True) for one in schedulers]
    return fly_several(schema.as_jobs(jobs), chosen, on_done)


def fly_several(
    table: pa.Table, several: Sequence[Conditions], on_done: Callable[[str], None] | None = None
) -> Comparison:
    """Fly a validated jobs table under several conditions; what `compare` and the commands share.

    Args:
        table: jobs table.
        several: resolved conditions, with the same seed.
        on_done: see `compare`.

    Raises:
        SpecError: no policy, or one of them twice; and whatever `simulate` raises.
    """
    labels = check_labels(several)
    predictions = Predictions(table, several[0].seed)
    for one in several:  # what cannot be ordered by is an error before any run
        predictions.column_of(one.scheduler.policy)
    outcomes = []
    for label, one in zip(labels, several, strict=True):
        outcomes.append(fly(table, one, predictions))
        if on_done is not None:
            on_done(label)
    if len(outcomes) > 1:  # to the last end of any
        outcomes = with_energy(outcomes, several[0].site)
    return Comparison(dict(zip(labels, outcomes, strict=True)))


def check_labels(several: Sequence[Conditions]) -> list[str]:
    """Return what the policies of several runs are called.

    Raises:
        SpecError: there is none, or one of them twice.
    """
    policies = [one.scheduler.policy for one in several]
    labels = [policy.label for policy in policies]
    if not labels:
        raise SpecError("policies", "expected at least one policy, each once, such as fifo,sjf.")
    twice = next((policy for policy in policies if labels.count(policy.label) > 1), None)
    if twice is not None:
        how = ', as in wt.policy("name")(function)' if isinstance(twice, FunctionPolicy) else ""
        raise SpecError("policies", f"found {quote(twice.label)} twice; name each once{how}.")
    return labels


@dataclass(frozen=True)
class Comparison:
    """Several runs of the same jobs on the same cluster.

    Attributes:
        outcomes: label (the policy's name) -> outcome, in the order asked for; the first is what
            the others are compared with.
    """

    outcomes: dict[str, Outcome]

    @property
    def table(self) -> pa.Table:
        """One row a policy: ``policy``, then the metrics of `Outcome.metrics`."""
        rows = [{"policy": label, **o.metrics()} for label, o in self.outcomes.items()]
        return pa.Table.from_pylist(rows)

    def __getitem__(self, label: str) -> Outcome:
        return self.outcomes[label]

    def save(self, path: str | Path) -> None:
        """Write the comparison to one file, which `load` reads back as it was.

        Raises:
            OSError: the file cannot be written.
        """
        saved.save(path, "comparison", self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return a comparison that `save` wrote.

        Raises:
            TraceError: the file is something else, or another version's.
        """
        found: Self = saved.load(path, "comparison", {**SAVED, cls.__name__: cls})
        return found

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of `table`."""
        yield from self.table.to_pylist()

    def _repr_html_(self) -> str:
        names = ("avg_wait", "p90_wait", "max_wait", "avg_jct", "utilization", "num_preemptions")
        rows = [(row["policy"], *(row[name] for name in names)) for row in self]
        cluster = next(iter(self.outcomes.values())).cluster.describe()
        return as_html(f"{len(rows)} policies on {cluster}", ("policy", *names), rows)
