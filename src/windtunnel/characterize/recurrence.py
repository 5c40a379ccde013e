"""How much of the work comes back? Jobs whose template has run several times.

The PAI analysis (Weng et al., "MLaaS in the Wild", NSDI'22): jobs with the same group tag are runs
of one template; a job without a tag counts to its user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.grids import at_least, checked_steps
from windtunnel.characterize.population import population
from windtunnel.characterize.relation import rows
from windtunnel.checked import checked_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from windtunnel.companions import Relation

#: What a job without a template counts to.
MISSING: tuple[str, ...] = ("user", "drop")


def recurrence(
    jobs: Relation,
    at: Sequence[int] = (1, 2, 5, 10, 20, 50, 100),
    *,
    missing: str = "user",
    where: str = "all",
) -> pa.Table:
    """Return the share of jobs whose template has at least k runs.

    Args:
        at: the numbers of runs k, rising, from 1.
        missing: a job without a template counts to its ``user`` (whose jobs of this kind are runs
            of one template), or is left out (``drop``).

    Returns:
        One row a k: ``runs`` (k), ``num_templates`` (with at least k runs), ``num_jobs`` (theirs),
        ``job_share`` (0..1 of n; null where n is 0), ``n`` (jobs with a template), ``left_out``
        (jobs without), ``by_user`` (jobs of n that count to their user), ``unsized``.

    Raises:
        SpecError: ``missing`` or ``where`` is unknown, or ``at`` does not rise.
    """
    import ibis
    import pyarrow as pa

    checked_choice("missing", missing, MISSING)
    steps = checked_steps(at)
    table = population(jobs, (), where=where, columns=("template", "user"))
    stands_in = table.user if missing == "user" else ibis.null("string")
    keyed = table.mutate(key=table.template.fill_null(stands_in), tagged=table.template.notnull())
    runs = keyed.group_by(["key", "tagged"]).aggregate(
        runs=keyed.asked.sum(), unsized=(~keyed.asked).sum()
    )
    known = runs.key.notnull() & (runs.runs > 0)
    sizes = runs.mutate(known=known)
    by_size = sizes.group_by(["known", "tagged", "runs"])
    found = rows(by_size.aggregate(count=sizes.count(), unsized=sizes.unsized.sum()))
    counted = [(row["runs"], row["count"]) for row in found if row["known"]]
    templates, jobs_of = at_least(counted, steps)
    n = sum(size * count for size, count in counted)
    others: dict[str, int] = {
        "n": n,
        "left_out": sum(row["runs"] * row["count"] for row in found if not row["known"]),
        "by_user": sum(
            row["runs"] * row["count"] for row in found if row["known"] and not row["tagged"]
        ),
        "unsized": sum(row["unsized"] for row in found),
    }
    columns: dict[str, Any] = {
        "runs": pa.array(steps, pa.int64()),
        "num_templates": pa.array(templates, pa.int64()),
        "num_jobs": pa.array(jobs_of, pa.int64()),
        "job_share": pa.array([j / n if n else None for j in jobs_of], pa.float64()),
        **{name: pa.array([v] * len(steps), pa.int64()) for name, v in others.items()},
    }
    return pa.table(columns)
