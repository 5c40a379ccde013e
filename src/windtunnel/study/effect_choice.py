"""The stated rule that picks a setting: most of the gain, without the starvation.

A run does not starve the big jobs where the P99 of their waits and their longest wait are at most
`TOLERANCE` times those under first come first served at the same load. Of the settings of one
predictor that starve them at no load, the rule picks the one with the lowest mean wait (over the
loads, each counted relative to first come first served), if it is lower than without prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How much longer, as a factor, the big jobs may wait than under first come first served.
TOLERANCE = 1.1


@dataclass(frozen=True)
class Choice:
    """What the rule picked.

    Attributes:
        policy: the setting's label; None = no setting gains anything without starving big jobs.
        queueing: its head-of-line rule; None without a choice.
        by_load: the same at each load alone: load -> label, or None.
        kept: load -> share of the gain of shortest first by the same predictor that the choice
            keeps; empty without a choice.
    """

    policy: str | None
    queueing: str | None
    by_load: dict[float, str | None]
    kept: dict[float, float | None]


def judged(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs with what they gain and whether they starve the big jobs.

    Args:
        runs: rows of `windtunnel.study.prediction_effect.PredictionEffect.runs`, with a run of
            kind ``fifo`` at each load.

    Returns:
        The rows with ``wait_saved`` (1 - mean wait / that under first come first served; None
        where nobody waits there), ``gain_kept`` (what it saves over what shortest first by the
        same predictor saves; None where that saves nothing), ``big_p99_ratio`` and
        ``big_max_ratio`` (waits of the big jobs over those under first come first served) and
        ``starves`` (either is above `TOLERANCE`).
    """
    base = {row["load"]: row for row in runs if row["kind"] == "fifo"}
    plain = {(row["load"], row["model"]): row for row in runs if row["kind"] == "shortest"}
    found = []
    for row in runs:
        first = base[row["load"]]
        whole = plain.get((row["load"], row["model"]))
        saved = first["avg_wait"] - row["avg_wait"]
        gain = 0.0 if whole is None else first["avg_wait"] - whole["avg_wait"]
        ratios = [_ratio(row[key], first[key]) for key in ("big_p99_wait", "big_max_wait")]
        found.append(
            {
                **row,
                "wait_saved": saved / first["avg_wait"] if first["avg_wait"] > 0 else None,
                "gain_kept": saved / gain if gain > 0 else None,
                "big_p99_ratio": ratios[0],
                "big_max_ratio": ratios[1],
                "starves": max(ratios) > TOLERANCE,
            }
        )
    return found


def _ratio(wait: float, base: float) -> float:
    """Return a wait over another; from nothing to something is infinitely longer."""
    if base > 0:
        return wait / base
    return 1.0 if wait == 0 else float("inf")


def choose(runs: Sequence[dict[str, Any]], model: str) -> Choice:
    """Return the setting of a predictor that the rule of this module picks.

    Args:
        runs: what `judged` returned.
        model: the predictor.
    """
    loads = list(dict.fromkeys(row["load"] for row in runs))
    own = [row for row in runs if row["model"] == model]
    by_load = {load: _lowest([row for row in own if row["load"] == load]) for load in loads}
    policy = _lowest(own)
    chosen = [row for row in own if row["policy"] == policy]
    return Choice(
        policy,
        chosen[0]["queueing"] if chosen else None,
        by_load,
        {row["load"]: row["gain_kept"] for row in chosen},
    )


def _lowest(rows: Sequence[dict[str, Any]]) -> str | None:
    """Return the label whose runs starve nowhere and save most on average; None = none saves."""
    best: tuple[float, str] | None = None
    for label in dict.fromkeys(row["policy"] for row in rows):
        mine = [row for row in rows if row["policy"] == label]
        if any(row["starves"] for row in mine):
            continue
        saved = float(np.mean([row["wait_saved"] or 0.0 for row in mine]))
        if saved > 0 and (best is None or saved > best[0]):
            best = (saved, label)
    return None if best is None else best[1]
