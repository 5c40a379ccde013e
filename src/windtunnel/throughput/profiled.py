"""Profiled points: the few measurements that an analytic model is fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.throughput.plans import Plan


@dataclass(frozen=True, slots=True)
class ProfiledPoint:
    """One measured iteration of a data-parallel plan on one node, with its phases, ms.

    Attributes:
        plan: the plan.
        gpus: GPUs, all on one node.
        threads: CPU threads with each GPU.
        forward: forward time of one GPU's samples, once; None = not measured.
        sync: backward and communication, overlapped, with what goes to the CPUs (``Tcc``); None =
            not measured.
        update: optimizer with swapping (``Topt``); None = not measured.
        total: the iteration.
    """

    plan: Plan
    gpus: int
    threads: int
    forward: float | None
    sync: float | None
    update: float | None
    total: float
