"""`compare`: the same jobs on the same cluster under several policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel import schema
from windtunnel.errors import SpecError, quote
from windtunnel.study.comparison import Comparison
from windtunnel.study.foresight import Foresight
from windtunnel.study.resolving import conditions_of, resolved
from windtunnel.study.simulate import fly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.site.conditions import Conditions
    from windtunnel.site.scheduler import Scheduler
    from windtunnel.site.site import Site
    from windtunnel.study.named import AnyPlacement, AnyPolicy
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
    foresight = Foresight(table, several[0].seed)
    for one in several:  # what cannot be ordered by is told before any run
        foresight.column_of(one.scheduler.policy)
    outcomes = {}
    for label, one in zip(labels, several, strict=True):
        outcomes[label] = fly(table, one, foresight)
        if on_done is not None:
            on_done(label)
    return Comparison(outcomes)


def check_labels(several: Sequence[Conditions]) -> list[str]:
    """Return what the policies of several runs are called.

    Raises:
        SpecError: there is none, or one of them twice.
    """
    labels = [one.scheduler.policy.label for one in several]
    if not labels:
        raise SpecError("policies", "expected at least one policy, each once, such as fifo,sjf.")
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise SpecError("policies", f"found {quote(twice)} twice; name each once.")
    return labels
