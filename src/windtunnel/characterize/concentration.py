"""Do a few users hold the cluster? The share of the top users, its whole curve, and Gini.

Users are put in order of what they take, most first. The share of the top x percent is read off
the line through the points (percent of users, percent of the total), as in the figures of Helios
(Hu et al., SC'21, section 3.3): between two whole users it is interpolated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.population import NONE, counted, group_label, population
from windtunnel.characterize.relation import rows
from windtunnel.checked import checked_number

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.companions import Relation

#: What can be shared out beside a fact: the jobs themselves.
JOBS = "jobs"


def top_users(
    jobs: Relation,
    share: float = 0.05,
    of: str = "gpu_time",
    *,
    where: str = "gpu",
    by: str = "user",
) -> dict[str, Any]:
    """Return how much of something the top users take.

    Args:
        share: which users: the top ``share`` of them, 0 < share <= 1.
        of: ``jobs``, or a fact that is added up (`windtunnel.characterize.facts`): ``gpu_time``,
            ``cpu_time``, ``wait`` ...
        by: who: ``user``, or another property of text such as ``vc``.

    Returns:
        ``of``, ``share``; ``users`` (with a job that has the fact), ``top`` (share x users, not
        rounded), ``part`` (0..1 of the total that they take), ``gini`` (0 = all alike, 1 - 1/users
        = one has all), both None where the total is 0; ``total`` (jobs, or the fact's unit, of all
        users), ``n`` (jobs in it), ``left_out`` (jobs that lack the fact), ``unnamed`` (jobs that
        have it but no user: they are in no share, and not in ``n``), ``unnamed_total`` (what they
        take), ``unsized``.

    Raises:
        SpecError: an argument names nothing known, or ``share`` is out of range.
    """
    checked_number("share", share, "a number above 0 and at most 1", above=0, most=1)
    sums = _by_user(jobs, of, where, by)
    curve = _curve(sums["amounts"])
    part = None if curve is None else float(np.interp(100.0 * share, *curve)) / 100.0
    users = len(sums["amounts"])
    return {
        "of": of,
        "share": share,
        "users": users,
        "top": share * users,
        "part": part,
        "gini": _gini(sums["amounts"]),
        "total": float(sums["amounts"].sum()),
        **sums["counts"],
    }


def concentration(
    jobs: Relation, of: str = "gpu_time", *, where: str = "gpu", by: str = "user"
) -> pa.Table:
    """Return the whole curve: what the top k users take, for every k.

    Args:
        of: ``jobs``, or a fact that is added up.

    Returns:
        One row a user, most first, ties by name: ``rank`` (from 1), the column named as ``by``,
        ``amount`` (jobs, or the fact's unit), ``user_percent`` (100 rank / users), ``percent``
        (of the total, cumulative; null where the total is 0), and ``n``, ``left_out``,
        ``unnamed``, ``unsized`` as `top_users` returns them. No row where nobody has a job.

    Raises:
        SpecError: an argument names nothing known.
    """
    import pyarrow as pa

    sums = _by_user(jobs, of, where, by)
    users = len(sums["amounts"])
    curve = _curve(sums["amounts"])
    percent = pa.nulls(users, pa.float64()) if curve is None else pa.array(curve[1][1:])
    ranks = np.arange(1, users + 1)
    counts = {
        name: pa.array([sums["counts"][name]] * users, pa.int64())
        for name in ("n", "left_out", "unnamed", "unsized")
    }
    return pa.table(
        {
            "rank": pa.array(ranks, pa.int64()),
            by: pa.array(sums["names"], pa.string()),
            "amount": pa.array(sums["amounts"], pa.float64()),
            "user_percent": pa.array(100.0 * ranks / max(users, 1), pa.float64()),
            "percent": percent,
            **counts,
        }
    )


def _by_user(jobs: Relation, of: str, where: str, by: str) -> dict[str, Any]:
    """Return what each user takes, most first, and what is in nobody's share."""
    facts = ("num_gpus",) if of == JOBS else (of,)
    table = population(jobs, facts, where=where, by=by)
    if of == JOBS:
        one = table.asked.ifelse(1.0, None).cast("float64")
        table = table.mutate(fact_0=one)
    named = table.label != NONE
    sums = table.mutate(named=named).group_by(["place", "label", "named"])
    found = rows(
        sums.aggregate(amount=table.fact_0.sum().fill_null(0.0), **counted(table, table.fact_0))
    )
    counts = {
        "n": sum(row["n"] for row in found if row["named"]),
        "left_out": sum(row["left_out"] for row in found),
        "unnamed": sum(row["n"] for row in found if not row["named"]),
        "unnamed_total": float(sum(row["amount"] for row in found if not row["named"])),
        "unsized": sum(row["unsized"] for row in found),
    }
    users = [
        (row["amount"], group_label(by, row["place"], row["label"]))
        for row in found
        if row["named"] and row["n"]
    ]
    users.sort(key=lambda user: (-user[0], user[1]))
    return {
        "names": [name for _, name in users],
        "amounts": np.array([amount for amount, _ in users], dtype=np.float64),
        "counts": counts,
    }


def _curve(amounts: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (percent of users, percent of the total), both from 0, or None where there is none.

    Args:
        amounts: Float array of shape (users,), descending.
    """
    total = amounts.sum()
    if not total > 0:
        return None
    reached = np.concatenate([[0.0], np.cumsum(amounts)]) * (100.0 / total)
    return np.linspace(0.0, 100.0, len(reached)), reached


def _gini(amounts: np.ndarray) -> float | None:
    """Return Gini's coefficient of amounts, shape (users,), descending."""
    n, total = len(amounts), amounts.sum()
    if not total > 0:
        return None
    ranks = np.arange(n, 0, -1)
    return float(2.0 * (ranks * amounts).sum() / (n * total) - (n + 1) / n)
