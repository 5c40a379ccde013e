"""Reinforcement learning: the scheduling of a trace as a Gymnasium environment (extra ``rl``).

`SchedulingEnv` flies a trace on the reference engine and asks who starts next; `first_come` and
`shortest_that_fits` are hand-written policies to compare with; `play` flies an episode.

>>> from windtunnel.rl import SchedulingEnv, play, shortest_that_fits
>>> jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
>>> play(SchedulingEnv(jobs, "1x1"), shortest_that_fits).metrics()["avg_jct"]
36.333333333333336
"""

from windtunnel.rl.environment import SchedulingEnv, first_come, play, shortest_that_fits

__all__ = ["SchedulingEnv", "first_come", "play", "shortest_that_fits"]
