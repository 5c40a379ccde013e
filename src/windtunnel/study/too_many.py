"""Check that the times of a trace are not out of all proportion to what recurs in the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.disruptions import Disruptions
    from windtunnel.sim.problem import Problem

#: Most rounds, or failures of one node, of a run: minutes of a compiled engine's time.
MOST = 1e9


def check_recurrences(
    problem: Problem, policy: Policy, disruptions: Disruptions | None, until: float
) -> None:
    """Check that the times of a trace are not out of all proportion to what recurs in the run.

    A policy's rounds go on while a job runs, random failures from the first submit to the last, and
    while a job runs. Times in other units than seconds, or a slip of the keyboard, make more of
    them than a run can ever come through.

    Args:
        problem: jobs and cluster.
        policy: its ``every`` is the seconds between rounds.
        disruptions: what disrupts the run; None = nothing.
        until: horizon, s.

    Raises:
        SpecError: there are more than `MOST`.
    """
    if not len(problem.submit):
        return
    submit = np.minimum(problem.submit, until)
    longest = float(np.minimum(problem.duration, until - submit).max())
    last = float(submit.max())
    if policy.every is not None:
        _refuse(policy.label, "rounds", longest / policy.every, longest, policy.every)
        # Beyond, one round's time cannot be distinguished from the next one's.
        _refuse(policy.label, "rounds", abs(last) / policy.every / 2**20, last, policy.every)
    span = max(last - float(submit.min()), longest)
    for model in () if disruptions is None else disruptions.failure_models:
        cycle = float(model.mtbf) + float(model.mttr)
        _refuse("disruptions", "failures of a node", span / cycle, span, cycle)


def _refuse(where: str, what: str, number: float, span: float, every: float) -> None:
    if number > MOST:
        raise SpecError(
            where,
            f"times of the trace reach {span:g} s: too many {what}, one in {every:g} s. Expected "
            "times in seconds, or a horizon (until, --until).",
        )
