"""What a policy of the user's raises says at which instant it was asked, and for which job."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt

JOBS: dict[str, Any] = {
    "job_id": ["a", "b"],
    "submit_time": [1, 5],
    "duration": [10, 10],
    "num_gpus": [1, 1],
}


def key(job: Any, now: float) -> float:
    return 1.0 if job.job_id == "a" else 1 / 0


def keys(jobs: Any, now: float) -> Any:
    return 1 / 0 if now > 1 else jobs.num_gpus


def decide(now: float, queue: Any, cluster: Any) -> Any:
    for job in queue:
        yield wt.Start(job) if now < 5 else 1 / 0


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("policy", "note"),
    [
        (key, "Policy 'key' was asked at t=5 s for the key of job 'b'."),
        (keys, "Policy 'keys' was asked at t=5 s."),
        (decide, "Policy 'decide' was asked at t=5 s."),
    ],
)
def test_an_error_in_a_policy_says_when(policy: Any, note: str, engine: Any) -> None:
    with pytest.raises(ZeroDivisionError) as error:
        wt.simulate(JOBS, "1x4", policy, engine=engine)
    assert error.value.__notes__ == [note]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_errors_of_the_simulator_s_own_say_it_once(engine: Any) -> None:
    def twice(now: float, queue: Any, cluster: Any) -> Any:
        for job in list(queue):
            yield wt.Start(job)
            yield wt.Start(job)

    with pytest.raises(wt.PolicyError, match="at t=1 s, job 'a'") as error:
        wt.simulate(JOBS, "1x4", twice, engine=engine)
    assert not hasattr(error.value, "__notes__")
