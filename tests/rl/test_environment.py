"""The environment: Gymnasium's own checks, and agents that act like policies get their outcomes."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import windtunnel as wt

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra 'rl'")

from gymnasium.utils.env_checker import check_env  # noqa: E402 - of the extra

from windtunnel.rl import SchedulingEnv, first_come, play, shortest_that_fits  # noqa: E402


def jobs_of(n: int = 300, seed: int = 0, **columns: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "submit_time": np.sort(np.floor(rng.uniform(0, 60 * n, n))),
        "duration": np.ceil(rng.lognormal(5.5, 1.2, n)),
        "num_gpus": rng.choice([1.0, 2.0, 4.0, 8.0, 16.0], n),
        **columns,
    }


def same(one: wt.Outcome, other: wt.Outcome) -> bool:
    points = one.flight.scheduling_points == other.flight.scheduling_points
    return points and one.table.equals(other.table) and one.segments.equals(other.segments)


def test_gymnasiums_own_checks_pass() -> None:
    env = SchedulingEnv(jobs_of(40), "2x8", window=4, episode_jobs=20)
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("cluster", ["3x8:A100", "pool:24"])
@pytest.mark.parametrize("window", [1, 5])
def test_first_come_is_fifo(cluster: str, window: int) -> None:
    jobs = jobs_of()
    out = play(SchedulingEnv(jobs, cluster, window=window), first_come)
    assert out.metrics()["num_waited"] > 100
    assert same(out, wt.simulate(jobs, cluster, "fifo", queueing="strict"))


def test_shortest_that_fits_is_sjf_that_skips_where_all_are_visible() -> None:
    jobs = jobs_of(seed=1)
    expected = wt.simulate(jobs, "3x8", "sjf", queueing="skip")
    assert same(play(SchedulingEnv(jobs, "3x8", window=300), shortest_that_fits), expected)
    narrow = play(SchedulingEnv(jobs, "3x8", window=4), shortest_that_fits)
    assert narrow.metrics()["avg_jct"] > expected.metrics()["avg_jct"]
    fifo = wt.simulate(jobs, "3x8", "fifo").metrics()["avg_jct"]
    assert narrow.metrics()["avg_jct"] < fifo


def test_any_option_of_simulate_is_at_hand() -> None:
    jobs = jobs_of(80, num_gpus=np.tile([0.5, 1.0, 2.0, 8.0], 20), submit_time=np.arange(80.0))
    options = {"placement": "fgd", "until": 5000.0, "disruptions": "mtbf:6h/mttr:1h", "seed": 3}
    out = play(SchedulingEnv(jobs, "2x8", **options), first_come)
    assert same(out, wt.simulate(jobs, "2x8", "fifo", queueing="strict", **options))


def test_rewards_add_up_to_the_mean_completion_time() -> None:
    env = SchedulingEnv(jobs_of(seed=2), "3x8", window=8)
    observation, info = env.reset()
    total, over = 0.0, False
    while not over:
        action = int(env.action_space.sample(info["action_mask"]))
        observation, reward, over, cut, info = env.step(action)
        assert env.observation_space.contains(observation)
        assert reward <= 0
        assert not cut
        total += reward
    metrics = env.outcome.metrics()
    assert metrics["num_finished"] == 300
    assert total == pytest.approx(-metrics["avg_jct"], rel=1e-9)


def test_a_hand_worked_episode() -> None:
    jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 2]}
    env = SchedulingEnv(jobs, "1x2", window=2)
    observation, info = env.reset()
    assert observation["jobs"].tolist() == [[1, 1, 30, 0, 1], [1, 1, 10, 0, 1]]
    assert observation["cluster"].tolist() == [2, 2, 2, 0]
    assert info["action_mask"].tolist() == [1, 1, 0]  # nothing runs: somebody has to start
    assert info["time"] == 0
    observation, reward, over, _, info = env.step(1)  # the short one; the other still fits
    assert observation["jobs"].tolist() == [[1, 1, 30, 0, 1], [0, 0, 0, 0, 0]]
    assert info["action_mask"].tolist() == [1, 0, 1]
    assert (reward, over) == (0, False)
    observation, reward, over, _, info = env.step(1)  # that row is empty: no more at this instant
    assert info["time"] == 1  # the third arrives; it does not fit, the first does
    assert reward == pytest.approx(-2 / 3)
    assert observation["jobs"].tolist() == [[1, 1, 30, 1, 1], [1, 2, 25, 0, 0]]
    observation, reward, over, _, info = env.step(2)  # nobody: at 10 the short one ends
    assert info["time"] == 10
    assert reward == pytest.approx(-3 * 9 / 3)
    assert info["action_mask"].tolist() == [1, 1, 0]
    _, reward, over, _, info = env.step(1)  # the third, 10 to 35; then the first has a place again
    assert (over, info["time"]) == (False, 35)
    assert reward == pytest.approx(-2 * 25 / 3)
    observation, reward, over, _, _ = env.step(2)  # nobody means the first that fits
    assert over
    assert reward == pytest.approx(-30 / 3)
    assert env.over
    assert not observation["jobs"].any()
    assert env.outcome.table["start_time"].to_pylist() == [35, 0, 10]


def test_episodes_are_drawn_by_the_seed_and_may_be_chosen() -> None:
    env = SchedulingEnv(jobs_of(), "3x8", episode_jobs=50)
    env.reset(seed=5)
    first = play(env, first_come, seed=5)
    assert len(first.jobs) == 50
    assert same(play(env, first_come, seed=5), first)
    assert not same(play(env, first_come, seed=6), first)
    env.reset(options={"first": 10})
    env.close()
    env.reset(options={"first": 999})
    while not env.over:
        env.step(0)
    assert env.outcome.submit_time[-1] == jobs_of()["submit_time"][-1]


def _threads_of_runs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "windtunnel run"]


def test_no_thread_and_no_paused_collector_is_left_behind() -> None:
    for ending in _threads_of_runs():  # of other tests: asked to end, but not yet over
        ending.join(60)
    assert _threads_of_runs() == []
    env = SchedulingEnv(jobs_of(), "3x8")
    for _ in range(5):
        env.reset()
        assert gc.isenabled()
        env.step(0)
    env.close()
    env.close()
    assert _threads_of_runs() == []
    env.reset()
    assert len(_threads_of_runs()) == 1
    del env
    gc.collect()
    assert _threads_of_runs() == []
    assert gc.isenabled()


def test_an_environment_does_not_keep_its_past_episodes() -> None:
    env = SchedulingEnv(jobs_of(40), "3x8")
    env.reset()
    first = weakref.ref(env._run)
    env.reset()
    gc.collect()
    assert first() is None
    env.close()


def test_a_run_without_a_choice_is_over_at_once() -> None:
    env = SchedulingEnv({"submit_time": [0], "duration": [5], "num_gpus": [9]}, "1x2",
                        oversize="reject")  # fmt: skip
    env.reset()
    assert env.over
    assert env.outcome.metrics()["num_rejected"] == 1
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)


def test_errors_of_the_run_are_raised_where_it_is_begun() -> None:
    with pytest.raises(wt.SchemaError, match="larger cluster"):
        SchedulingEnv({"submit_time": [0], "duration": [5], "num_gpus": [9]}, "1x2").reset()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "at least 1 job"),
        ({"length": "durration"}, "duration"),
        ({"length": "estimate"}, "have no estimate"),
        ({"episode_jobs": 301}, "expected some of them"),
        ({"policy": "fifo"}, "decides that itself"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wt.SpecError, match=message):
        SchedulingEnv(jobs_of(), "3x8", **options)


def test_the_outcome_is_there_once_an_episode_has_ended() -> None:
    env = SchedulingEnv(jobs_of(), "3x8")
    with pytest.raises(RuntimeError, match="no episode"):
        _ = env.outcome
