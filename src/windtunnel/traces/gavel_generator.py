"""Gavel's synthetic workloads: the published generator, stream for stream.

Narayanan et al., OSDI'20, section 7.1. Models are drawn evenly from 26, GPUs as in Microsoft's
trace (70 % one, 10 % two, 15 % four, 5 % eight), durations log-uniformly (80 % from 10^1.5 to 10^3
minutes, 20 % from 10^3 to 10^4), gaps between arrivals exponentially. Python's `random.Random`
with seed + 2 draws the jobs, seed + 3 the gaps and seed + 6 the SLOs, so that a seed gives the
published traces to the byte.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windtunnel.errors import SpecError, quote
from windtunnel.schema import conform
from windtunnel.throughput.measured import REFERENCE_TYPE, gavel_families, gavel_speeds
from windtunnel.traces.gavel import LICENCE
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.throughput.measured import Family

_MAX_JOBS = 1_000_000
#: Upper ends of the draw for 1, 2, 4 and 8 GPUs.
_GANGS = ((0.7, 1), (0.8, 2), (0.95, 4), (1.0, 8))
#: Multiples of the ideal duration that a deadline allows.
_SLOS = (1.2, 2.0, 10.0)
_HIGH_PRIORITY = 5


@dataclass(frozen=True)
class _Job:
    """One drawn job."""

    model: str
    command: str
    family: Family
    steps: float
    gang: int
    weight: int
    slo: float | None
    arrival: float


def generate_gavel(
    *,
    jobs: int = 100,
    gap: float = 0.0,
    multi_gpu: bool = True,
    priorities: bool = False,
    slos: bool = False,
    whole_steps: bool = True,
    seed: int = 0,
) -> Trace:
    """Return a workload as Gavel's simulations draw it.

    Args:
        jobs: how many, 1 to 1,000,000.
        gap: mean seconds between arrivals; 0 = all arrive at time 0.
        multi_gpu: let jobs have 2, 4 or 8 GPUs.
        priorities: give a fifth of the jobs weight 5.
        slos: give each job an SLO of 1.2, 2 or 10 times its ideal duration, evenly.
        whole_steps: cut steps and arrivals to the digits that a trace file has; False = keep them
            as drawn, as the published simulations that draw while they run do.
        seed: same seed, same workload; >= 0.

    Raises:
        SpecError: an option is out of range.
    """
    if not isinstance(jobs, int) or isinstance(jobs, bool) or not 1 <= jobs <= _MAX_JOBS:
        raise SpecError("jobs", f"expected a whole number 1..{_MAX_JOBS}, not {quote(jobs)}.")
    if not isinstance(gap, int | float) or not math.isfinite(gap) or gap < 0:
        raise SpecError("gap", f"expected a finite number of seconds >= 0, not {quote(gap)}.")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise SpecError("seed", f"expected a whole number >= 0, not {quote(seed)}.")
    drawn = list(_drawn(jobs, gap, seed, multi_gpu=multi_gpu, priorities=priorities, slos=slos))
    table = conform(pa.table(_columns(drawn, whole_steps=whole_steps)), source="synthetic:gavel")
    settings = {
        "jobs": jobs,
        "gap": gap,
        "multi_gpu": multi_gpu,
        "priorities": priorities,
        "slos": slos,
        "whole_steps": whole_steps,
        "seed": seed,
    }
    notes = ("Durations are ideal ones, on V100s alone: steps over the measured speed.",)
    metadata = TraceMetadata(
        name="synthetic:gavel",
        source="windtunnel.traces.gavel_generator, after Narayanan et al., OSDI'20",
        licence=LICENCE,
        rows_read=jobs,
        notes=notes,
        settings=settings,
    )
    return Trace(table, metadata)


def _drawn(
    count: int, gap: float, seed: int, *, multi_gpu: bool, priorities: bool, slos: bool
) -> Iterator[_Job]:
    # The published generator's own streams; a simulation's draws, no secrets.
    rng, gaps = random.Random(seed + 2), random.Random(seed + 3)  # noqa: S311
    limits = random.Random(seed + 6)  # noqa: S311
    speeds = gavel_speeds().alone[REFERENCE_TYPE]
    templates = [
        (model, command, family)
        for family in gavel_families()
        for model, command, _ in family.models()
    ]
    arrival = 0.0
    for number in range(count):
        draw = rng.uniform(0, 1)
        gang = next(size for upper, size in _GANGS if draw < upper or size == _GANGS[-1][1])
        gang = gang if multi_gpu else 1
        minutes = 10 ** (rng.uniform(3, 4) if rng.random() >= 0.8 else rng.uniform(1.5, 3))  # noqa: PLR2004
        model, command, family = rng.choice(templates)
        while gang > 1 and not family.distributed:
            model, command, family = rng.choice(templates)
        weight = _HIGH_PRIORITY if priorities and rng.uniform(0, 1) <= 0.2 else 1  # noqa: PLR2004
        slo = limits.choice(_SLOS) if slos else None
        if number and gap:
            arrival += -gap * math.log(1.0 - gaps.random())
        steps = 60 * minutes * speeds[model, gang]
        yield _Job(model, command, family, steps, gang, weight, slo, arrival)


def _columns(drawn: list[_Job], *, whole_steps: bool) -> dict[str, pa.Array]:
    """Return the columns that the reader gives for the same jobs."""
    speeds = gavel_speeds().alone[REFERENCE_TYPE]
    steps: list[float] = [job.steps for job in drawn]
    arrivals = [job.arrival for job in drawn]
    if whole_steps:
        steps = [int(count) for count in steps]
        # Arrivals as the file states them: microseconds.
        arrivals = [float(f"{arrival:f}") for arrival in arrivals]
    return {
        "job_id": pa.array([str(number) for number in range(len(drawn))]),
        "submit_time": pa.array(arrivals),
        "duration": pa.array(
            [count / speeds[job.model, job.gang] for count, job in zip(steps, drawn, strict=True)]
        ),
        "num_gpus": pa.array([float(job.gang) for job in drawn]),
        "num_tasks": pa.array([job.gang for job in drawn], pa.int32()),
        "template": pa.array([job.model for job in drawn]),
        "workload": pa.array([job.family.name for job in drawn]),
        "priority": pa.array([float(job.weight) for job in drawn]),
        "total_steps": pa.array(steps, pa.int64() if whole_steps else pa.float64()),
        "slo": pa.array([job.slo for job in drawn], pa.float64()),
        "command": pa.array([job.command for job in drawn]),
        "working_directory": pa.array([job.family.working_directory for job in drawn]),
        "steps_argument": pa.array([job.family.steps_argument for job in drawn]),
        "needs_data": pa.array(["yes" if job.family.needs_data else "no" for job in drawn]),
    }
