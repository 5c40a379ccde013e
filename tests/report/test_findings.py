"""The sentence on top tells gain and cost, whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windtunnel.report import findings

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.outcome import Outcome


def _pair(
    fly: Callable[..., Outcome], before: list[float], after: list[float]
) -> dict[str, Outcome]:
    submit, duration, gpus = [0.0, 0, 0, 0], [100.0] * 4, [1, 1, 1, 64]
    return {
        "fifo": fly(submit, before, duration, gpus),
        "srtf": fly(submit, after, duration, gpus, policy="srtf"),
    }


def test_gain_and_starving_gangs(fly: Callable[..., Outcome]) -> None:
    text = findings.headline(_pair(fly, [7200, 7200, 7200, 3600], [0, 0, 0, 11520]))
    assert text == (
        "srtf cuts the mean completion time by 53 % against fifo (49 m 40 s instead of 1 h 47 m), "
        "but jobs of 33\u201364 GPUs wait 3.2 times as long "
        "(3 h 12 m instead of 1 h 00 m on average)."
    )


def test_gain_with_a_class_that_did_not_wait_before(fly: Callable[..., Outcome]) -> None:
    text = findings.headline(_pair(fly, [7200, 7200, 7200, 0], [0, 0, 0, 600]))
    assert "but jobs of 33\u201364 GPUs wait 10 m 00 s instead of 0 s on average." in text


def test_gain_without_any_cost(fly: Callable[..., Outcome]) -> None:
    text = findings.headline(_pair(fly, [7200] * 4, [60] * 4))
    assert text.endswith("and jobs of no size wait noticeably longer.")


def test_no_gain(fly: Callable[..., Outcome]) -> None:
    text = findings.headline(_pair(fly, [60] * 4, [7200] * 4))
    assert text.startswith("srtf is no gain over fifo: its mean completion time is")


def test_equal_runs_are_reported_as_equal(fly: Callable[..., Outcome]) -> None:
    pair = _pair(fly, [60] * 4, [60] * 4)
    assert "completes jobs as fast as fifo" in findings.headline(pair)
    assert findings.cautions(pair) == [
        "srtf ran every job at the same times as fifo; the curves lie on top of each other."
    ]


def test_preempted_gangs_cost_completion_time_not_wait(fly: Callable[..., Outcome]) -> None:
    pair = _pair(fly, [7200, 7200, 7200, 0], [0, 0, 0, 0])
    flight = pair["srtf"].flight
    later = flight.end.copy()
    later[3] = 4000.0
    pair["srtf"] = replace(pair["srtf"], flight=replace(flight, end=later))
    assert "but jobs of 33\u201364 GPUs take 40 times as long" in findings.headline(pair)


def test_no_waits_at_all(fly: Callable[..., Outcome]) -> None:
    assert findings.headline(_pair(fly, [0] * 4, [0] * 4)).startswith("No job waits under any")


def test_nothing_finished(idle: Outcome, single: Outcome) -> None:
    assert findings.headline({"a": idle}) == "No job finished under a."
    assert findings.headline({"a": idle, "b": idle}) == "No job finished under a and b."
    assert findings.headline({"a": idle, "b": single}).startswith("No job finished under a, so")
    assert findings.headline({"a": single, "b": idle}) == "Only a finished any job."


def test_one_run(single: Outcome) -> None:
    text = findings.headline({"fifo": single})
    assert text.startswith("Under fifo a job waits 0 s and completes in 1 m 40 s on average")


def test_different_numbers_of_finished_jobs_are_reported(idle: Outcome, single: Outcome) -> None:
    text = " ".join(findings.cautions({"a": single, "b": idle}))
    assert "different sizes" in text
    assert "a 1 and b 0" in text


def test_much_longer_needs_a_factor_and_a_minute() -> None:
    assert findings.much_longer(0.0, 61.0)
    assert not findings.much_longer(0.0, 59.0)
    assert not findings.much_longer(1000.0, 1900.0)
    assert not findings.much_longer(10.0, None)
    assert not findings.much_longer(None, 1e6)
