"""Flights of one policy on the board: what is measured of each, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.board.bounds import lower_bound
from windtunnel.board.scenarios import LATE, SPAN, WINDOW, WORST
from windtunnel.board.workloads import ChangedScenarioError, draw
from windtunnel.errors import PolicyError, WindtunnelError
from windtunnel.policies import resolve_policy
from windtunnel.site.window import Window
from windtunnel.study.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.board.scenarios import Scenario
    from windtunnel.board.workloads import Drawn
    from windtunnel.sim.outcome import Outcome


class CheatError(PolicyError):
    """A policy did what it has no business with."""


#: What is no reason not to fly a scenario.
UNFORGIVEN = (ChangedScenarioError, CheatError)
#: Digits of a value: fewer than machines could differ in.
_DIGITS = 9


@dataclass(frozen=True)
class Flights:
    """What a policy came to in one scenario.

    Attributes:
        values: the measure of each seed; empty where the policy does not fly such jobs.
        reason: why it does not; empty where it does.
    """

    values: tuple[float, ...]
    reason: str = ""


def rounded(value: float) -> float:
    """Return a value with as many digits as count."""
    return float(f"{value:.{_DIGITS}g}")


def drawn_as(scenario: Scenario, seed: int, digests: Mapping[str, str]) -> Drawn:
    """Return a scenario with a seed, checked against its digest where there is one.

    Args:
        scenario: which.
        seed: which.
        digests: "philly/1" -> SHA-256; a seed that is not there is not frozen.

    Raises:
        ChangedScenarioError: jobs or site are others than were frozen.
    """
    drawn = draw(scenario, seed)
    wanted = digests.get(f"{scenario.name}/{seed}")
    if wanted is not None and wanted != drawn.digest:
        raise ChangedScenarioError(
            f"bench: scenario {scenario.name!r}, seed {seed}: its jobs or its site have the digest "
            f"{drawn.digest[:16]}; expected {wanted[:16]}, as it was frozen. This version of "
            "windtunnel or of numpy draws other jobs: its values do not compare with the board's."
        )
    return drawn


def fly(drawn: Drawn, policy: Any) -> Outcome:
    """Fly a policy in a scenario; everything else is the policy's own, or the scenario's.

    Raises:
        WindtunnelError: the policy cannot fly these jobs.
    """
    resolved = resolve_policy(policy)
    fields = drawn.fields(elastic=resolved.elastic)
    return simulate(drawn.jobs, drawn.cluster, resolved, **fields)


def measured_jobs(drawn: Drawn) -> np.ndarray:
    """Return which jobs are measured, Bool array (n,)."""
    submit = np.asarray(drawn.jobs["submit_time"].to_numpy(), float)
    return Window.of(WINDOW).inside(submit, np.ones(len(submit), dtype=bool))


def measure(drawn: Drawn, outcome: Outcome) -> float:
    """Return the scenario's measure of an outcome; infinite where a measured job never ends."""
    inside = measured_jobs(drawn)
    ends = outcome.table["end_time"].to_numpy(zero_copy_only=False).astype(float)
    submit = np.asarray(drawn.jobs["submit_time"].to_numpy(), float)
    if np.isnan(ends).any():
        return math.inf
    if drawn.scenario.measure == SPAN:
        return float(ends.max() - submit.min())
    if drawn.scenario.measure == LATE:
        deadline = np.asarray(drawn.jobs["deadline"].to_numpy(), float)
        return 1 + float((ends > deadline)[inside].mean())
    jct = (ends - submit)[inside]
    if drawn.scenario.measure == WORST:
        groups = np.array(drawn.jobs["vc"].to_pylist(), dtype=object)[inside]
        return max(_mean(jct[groups == name]) for name in sorted(set(groups.tolist())))
    return _mean(jct)


def _mean(values: np.ndarray) -> float:
    """Return a mean whose last bit no machine's way of adding decides."""
    return math.fsum(values.tolist()) / len(values)


def bounds_of(scenario: Scenario, seeds: Sequence[int], digests: Mapping[str, str]) -> list[float]:
    """Return the lower bound of each seed.

    Raises:
        ChangedScenarioError: as `drawn_as`.
    """
    draws = [drawn_as(scenario, seed, digests) for seed in seeds]
    return [rounded(lower_bound(drawn, measured_jobs(drawn))) for drawn in draws]


def flights(
    scenario: Scenario, seeds: Sequence[int], policy: Any, digests: Mapping[str, str]
) -> Flights:
    """Fly a policy over the seeds of a scenario.

    Raises:
        ChangedScenarioError: as `drawn_as`.
        CheatError: the policy was caught.
        WindtunnelError: the policy flies one seed and not another.
    """
    values: list[float] = []
    for seed in seeds:
        drawn = drawn_as(scenario, seed, digests)
        try:
            value = measure(drawn, fly(drawn, policy))
        except UNFORGIVEN:
            raise
        except WindtunnelError as error:
            if values:
                raise
            return Flights((), str(error).splitlines()[0])
        if math.isinf(value):
            return Flights((), "a job never ends")
        values.append(rounded(value))
    return Flights(tuple(values))
