"""Small runs whose schedules were worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Scenario:
    """Jobs on a cluster, and what comes of them.

    Attributes:
        name: what it is about.
        jobs: a mapping of columns, as `windtunnel.simulate` takes it.
        cluster: where, in words.
        starts: policy -> first start of each job, s.
        options: further fields of the run.
    """

    name: str
    jobs: Mapping[str, list[Any]]
    cluster: str
    starts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def _with_users(jobs: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return jobs whose users asked for their very duration, with names and priorities."""
    count = len(jobs["submit_time"])
    return {
        "estimate": jobs["duration"],
        "user": [("ada", "bob", "eve")[place % 3] for place in range(count)],
        "priority": [place % 2 for place in range(count)],
        **jobs,
    }


#: They are few and small: a plug-in that fails on one of them is easily looked into.
SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "one GPU",
        _with_users({"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}),
        "pool:1",
        {"fifo": (0, 30, 40), "sjf": (35, 0, 10), "srtf": (35, 0, 10)},
    ),
    Scenario(
        "two nodes of four, in strict order",
        _with_users(
            {
                "submit_time": [0, 0, 1, 2, 3, 4],
                "duration": [10, 4, 3, 8, 1, 2],
                "num_gpus": [3, 4, 2, 8, 1, 1],
            }
        ),
        "2x4",
        {"fifo": (0, 0, 4, 10, 18, 18), "sjf": (0, 0, 4, 10, 3, 4)},
        {"queueing": "strict"},
    ),
    Scenario(
        "all at one instant, one of no length",
        _with_users(
            {"submit_time": [5, 5, 5, 5], "duration": [2, 0, 2, 1], "num_gpus": [2, 2, 1, 1]}
        ),
        "1x2",
        {"fifo": (5, 7, 7, 7), "sjf": (6, 5, 8, 5)},
        {"queueing": "strict"},
    ),
    Scenario(
        "two GPU types, and who must have which",
        _with_users(
            {
                "submit_time": [0, 0, 0, 0],
                "duration": [4, 4, 4, 4],
                "num_gpus": [2, 2, 2, 2],
                "gpu_type": ["V100", "T4", "V100", None],
            }
        ),
        "1x2:T4,1x2:V100",
        {"fifo": (0, 0, 4, 4)},
        {"queueing": "strict"},
    ),
    Scenario(
        "more than a node, and a backfiller's gap",
        _with_users(
            {
                "submit_time": [0, 1, 2, 3],
                "duration": [10, 10, 5, 9],
                "estimate": [10, 10, 5, 9],
                "num_gpus": [4, 8, 2, 4],
            }
        ),
        "2x4",
        {"easy": (0, 10, 2, 20)},
    ),
    Scenario(
        "nobody",
        _with_users({"submit_time": [], "duration": [], "num_gpus": []}),
        "2x4",
        {"fifo": ()},
    ),
)
