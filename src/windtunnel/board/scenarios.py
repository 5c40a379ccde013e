"""`SCENARIOS`: the twelve frozen scenarios of ``bench-1``.

A scenario is a twin that ships with the package, a site, a load and what is measured; with a seed
it is one jobs table and one list of failures (`windtunnel.board.workloads`). What they are is
frozen by digests (`windtunnel.board.record`): a change is a new version, ``bench-2``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: The version of the board: scenarios, measures and score.
VERSION = "bench-1"
#: Public seeds of each scenario.
SEEDS: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
#: Submissions that are measured; those before and behind are flown, too.
WINDOW = "10%..90%"
#: What saving and restoring a preempted job's state costs it, s.
SAVE, RESTORE = 10.0, 20.0

#: Measured values; of each less is better.
MEAN, WORST, LATE, SPAN = "mean", "worst", "late", "span"
#: What each of them is, for reports.
MEASURES: dict[str, str] = {
    MEAN: "mean completion time (s)",
    WORST: "mean completion time of the virtual cluster that fares worst (s)",
    LATE: "1 + share of the jobs that miss their deadline",
    SPAN: "time from the first submission to the last completion (s)",
}


@dataclass(frozen=True, eq=False)
class Scenario:
    """One scenario: what is flown, where, and what is measured.

    Attributes:
        name: what users type.
        covers: what it is about, a phrase.
        twin: the synthetic trace whose jobs it draws, ``kalos``; ``elastic`` has its own.
        cluster: words as for `windtunnel.simulate`.
        load: GPU time asked for, over that of the cluster from the first submission to the last.
        num_jobs: jobs.
        measure: one of `MEASURES`.
        types: GPU types that users ask for; each user asks for one or (the last one) for any.
        failures: (mean time between failures, time to repair) of a node, s; None = none.
        allowed: deadlines stand at so many times the duration behind the submission, drawn evenly
            from these; empty = none.
        largest: GPUs of the largest job that is drawn.
    """

    name: str
    covers: str
    twin: str
    cluster: str
    load: float
    num_jobs: int
    measure: str = MEAN
    types: tuple[str | None, ...] = ()
    failures: tuple[float, float] | None = None
    allowed: tuple[int, ...] = ()
    largest: float = math.inf


_DAY, _HOUR = 86_400.0, 3_600.0
SCENARIOS: tuple[Scenario, ...] = (
    Scenario("philly", "rigid jobs, many of one GPU", "philly", "4x8", 0.95, 500),
    Scenario("helios", "rigid jobs, strict gangs", "helios-venus", "8x8", 0.9, 400),
    Scenario("saturn", "rigid jobs, a busy cluster", "helios-saturn", "6x8", 0.95, 400),
    Scenario("kalos", "gangs of up to the whole cluster", "kalos", "16x8", 0.8, 300),
    Scenario("overload", "more work than is served", "helios-earth", "3x8", 1.3, 400),
    Scenario("drain", "the time until all is done", "philly", "4x8", 1.5, 400, SPAN),
    Scenario(
        *("types", "GPU types that bind", "philly", "2x8:A100,2x8:V100,2x8:T4", 0.85, 400),
        types=("A100", "V100", "T4", None),
    ),
    Scenario("sharing", "parts of GPUs, cores and memory", "pai", "pai", 5.0, 400, largest=2),
    Scenario(
        *("failures", "nodes that fail, checkpoints every hour", "helios-uranus", "6x8", 0.85, 400),
        failures=(4 * _DAY, 6 * _HOUR),
    ),
    Scenario(
        *("tenants", "virtual clusters that share by quota", "helios-saturn", "8x8", 0.9, 400),
        measure=WORST,
    ),
    Scenario(
        *("deadlines", "deadlines of 2 to 8 times the duration", "philly", "4x8", 1.0, 400),
        measure=LATE,
        allowed=(2, 3, 4, 6, 8),
    ),
    Scenario("elastic", "training jobs that may change size and plan", "elastic", "4x8", 0.9, 150),
)
BY_NAME: dict[str, Scenario] = {scenario.name: scenario for scenario in SCENARIOS}
