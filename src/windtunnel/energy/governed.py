"""What policies of power did to a run, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.metrics import mean_gpus

if TYPE_CHECKING:
    from windtunnel.energy.account import Account

#: The numbers, with what they mean where there is no such policy: none of it happened.
KEYS: tuple[str, ...] = (
    *("capped_time", "num_cuts", "limited_gpu_time"),
    *("num_shifted", "avg_shift", "num_late", "num_pauses"),
    *("num_wakes", "node_time_asleep", "slept_j"),
)

#: Ends within a microsecond of the deadline are in time: sums of times round.
_INSTANT = 1e-6


def governed(book: Account) -> dict[str, float | int | None]:
    """Return what policies of power did.

    Keys: ``capped_time`` (s in which some job whose turn it was waited for power alone, up to the
    horizon), ``num_cuts`` (times a job was stopped because the cap fell), ``limited_gpu_time``
    (GPU-seconds that power limits, and slow-downs if the run has a model of them, cost; null
    without limits); ``num_shifted`` (jobs held after their submission), ``avg_shift`` (s, over
    those), ``num_late`` (jobs to be shifted that ended after their deadline, or had not ended at it
    when the run was cut), ``num_pauses`` (stops to go on at a better time); ``num_wakes`` (nodes
    that were woken), ``node_time_asleep`` (node-seconds) and ``slept_j`` (J that the sleeping nodes
    would have drawn idle, PUE included, less what they drew asleep). All null for a run without
    such policies.

    Args:
        book: the run's energy.
    """
    record = book.outcome.flight.power
    if record is None:
        return dict.fromkeys(KEYS)
    held = record.held_until - book.outcome.submit_time
    shifted = held > 0
    node, start, end = book.asleep
    end_time = book.outcome.flight.end
    to_shift = ~np.isnan(record.deadline)
    over = np.where(np.isnan(end_time), book.span[1], end_time)
    late = to_shift & (over > record.deadline + _INSTANT)
    return {
        "capped_time": record.capped_time,
        "num_cuts": record.num_cuts,
        "limited_gpu_time": _limited(book),
        "num_shifted": int(shifted.sum()),
        "avg_shift": float(held[shifted].mean()) if shifted.any() else None,
        "num_late": int(late.sum()),
        "num_pauses": record.num_pauses,
        "num_wakes": record.num_wakes,
        "node_time_asleep": float((end - start).sum()),
        "slept_j": float((book.saved_w[node] * (end - start)).sum()) * book.model.pue,
    }


def _limited(book: Account) -> float | None:
    cap, lost = book.outcome.settings["power_cap"], book.outcome.flight.slowdown_time
    if cap is None or cap["limits"] == "none" or lost is None:
        return None
    return float((mean_gpus(book.outcome) * lost).sum())
