"""What a run's notes say of jobs that wait for ever."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.flight import NOT_SUBMITTED, RUNNING, WAITING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.sim.contract import Policy
    from windtunnel.sim.flight import Flight


def left_waiting(
    flight: Flight, until: float, policy: Policy, reasons: Mapping[int, str]
) -> list[str]:
    """Return notes on the jobs that wait at the end of a run without a horizon.

    Args:
        flight: the run.
        until: its horizon, s.
        policy: as it flew.
        reasons: row of a job -> why it waits, where the policy says so itself.
    """
    rows = np.flatnonzero(flight.status == WAITING).tolist()
    waiting = len(rows) - len(reasons.keys() & set(rows))
    # A policy may end the run itself (`Stop`), while others run or are still to come.
    was_cut = until < math.inf or np.isin(flight.status, (RUNNING, NOT_SUBMITTED)).any()
    if was_cut or not waiting:
        return []
    jobs = f"{waiting:,} job{'s wait' if waiting > 1 else ' waits'} for ever"
    if flight.power is not None and flight.power.capped_time > 0:
        return [f"{jobs}: the power that they need is never free."]
    up = None if flight.interruptions is None else flight.interruptions.up_gpus
    if up is not None and up[-1] < up.max():
        return [f"{jobs}: the GPUs they ask for do not come back."]
    free = "all GPUs are free" if up is None else "no job runs"
    return [f"{jobs} though {free}: policy {policy.label!r} starts none of them."]
