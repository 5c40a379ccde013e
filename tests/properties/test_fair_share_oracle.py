"""Fair share and multifactor against a second simulator: a second at a time, sums, no accounts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies.fair_share import Multifactor

GPUS = 3
AGE, SIZE, FAIR = 100.0, 40.0, 1000.0
MAX_AGE = 16.0

Row = tuple[int, int, int, int]
ROWS = st.lists(
    st.tuples(st.integers(0, 25), st.integers(1, 9), st.integers(1, GPUS), st.integers(0, 2)),
    min_size=2,
    max_size=12,
)


def used(stays: list[tuple[int, int, int, int]], now: int, half_life: float) -> list[float]:
    """Return decayed GPU-seconds of each group, each stay's integral in closed form."""
    totals = [0.0, 0.0, 0.0]
    for group, gpus, begin, end in stays:
        until = min(end, now)
        if math.isinf(half_life):
            totals[group] += gpus * (until - begin)
            continue
        scale = half_life / math.log(2)
        late, early = (2.0 ** (-(now - at) / half_life) for at in (until, begin))
        totals[group] += gpus * scale * (late - early)
    return totals


def naive(rows: list[Row], shares: list[float], half_life: float, every: int) -> list[int]:
    """Return the starts; give up (`assume`) where rounding could decide."""
    names = sorted({row[3] for row in rows})
    due = {group: shares[group] / sum(shares[g] for g in names) for group in names}
    starts: dict[int, int] = {}
    stays: list[tuple[int, int, int, int]] = []
    keys: dict[int, float] = {}

    def key(job: int, now: int) -> float:
        submit, _, gpus, group = rows[job]
        totals = used(stays, now, half_life)
        part = totals[group] / sum(totals) if sum(totals) else 0.0
        age = AGE * min(1.0, (now - submit) / MAX_AGE)
        return -(age + SIZE * gpus / GPUS + FAIR * 2.0 ** -(part / due[group]))

    now = 0
    while len(starts) < len(rows):
        waiting = [j for j, row in enumerate(rows) if row[0] <= now and j not in starts]
        for job in waiting:
            if job not in keys or now % every == 0:
                keys[job] = key(job, now)
        order = sorted(waiting, key=lambda j: (keys[j], rows[j][0], j))
        gaps = np.diff(sorted(keys[j] for j in order))
        assume(not ((gaps != 0) & (gaps < 1e-6)).any())
        for job in order:
            free = GPUS - sum(g for _, g, begin, end in stays if begin <= now < end)
            _, duration, gpus, group = rows[job]
            if gpus > free:
                break
            starts[job] = now
            stays.append((group, gpus, now, now + duration))
        now += 1
    return [starts[job] for job in range(len(rows))]


@settings(max_examples=150, deadline=None)
@given(
    ROWS,
    st.lists(st.sampled_from((1.0, 2.0, 5.0)), min_size=3, max_size=3),
    st.sampled_from((4.0, 11.0, math.inf)),
    st.sampled_from((1, 3, 7)),
)
def test_every_start(rows: list[Row], shares: list[float], half_life: float, every: int) -> None:
    jobs: dict[str, Any] = {
        name: [float(row[at]) for row in rows]
        for at, name in enumerate(("submit_time", "duration", "num_gpus"))
    }
    jobs["user"] = [f"u{row[3]}" for row in rows]
    policy = Multifactor(
        age=AGE, size=SIZE, fairshare=FAIR, max_age=MAX_AGE, half_life=half_life, every=every,
        shares={f"u{group}": share for group, share in enumerate(shares)},
    )  # fmt: skip
    out = wt.simulate(jobs, f"pool:{GPUS}", policy)
    assert out.table["start_time"].to_pylist() == naive(rows, shares, half_life, every)
