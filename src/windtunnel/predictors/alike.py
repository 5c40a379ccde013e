"""The jobs of a log among which a request would wait: of its partition, GPU type, QOS, limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Time limits between half of a request's and twice of it are like it.
LIKE_LIMIT = 2.0


def jobs_alike(
    jobs: pa.Table, wanted: Mapping[str, str | None], limit: float | None = None
) -> pa.Table:
    """Return the jobs that a request is told by.

    Args:
        wanted: column -> word that they have in it, in any case; None = any.
        limit: a time limit, s: theirs are between half of it and twice of it; None = any.

    Raises:
        SpecError: no job has such a word, or such a limit; the nearest word is suggested.
    """
    for column, word in wanted.items():
        if word is None:
            continue
        option = f"--{column.replace('_', '-')}"
        there = column in jobs.column_names
        words = [name or "" for name in jobs[column].to_pylist()] if there else []
        mask = np.array([name.lower() == word.lower() for name in words], dtype=bool)
        if not mask.any():
            known = sorted(set(words) - {""})
            hint = nearest(word, known) if known else ""
            raise SpecError(option, f"the log has no {column} {quote(word)}.{hint}")
        jobs = jobs.filter(pa.array(mask))
    if limit is None:
        return jobs
    asked = np.asarray(jobs["estimate"].to_numpy(), dtype=np.float64)
    mask = (asked >= limit / LIKE_LIMIT) & (asked <= limit * LIKE_LIMIT)
    if not mask.any():
        raise SpecError("--time-limit", f"no job of the log asked for about {limit:g} s.")
    return jobs.filter(pa.array(mask))
