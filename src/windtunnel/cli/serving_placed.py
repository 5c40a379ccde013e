"""Where the models of a serving command lie: a file's placement, or what a policy finds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import TIME, option, together
from windtunnel.cli.serving_options import degrees, placement_from
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from windtunnel.serving import Placement, Profile, Schedule, Workload, WorkloadSpec

GIB = 2.0**30
POLICIES = (
    "sr (sr-greedy), sr-uniform, sr-ilp, round-robin, mp-greedy (mp-greedy-4), mp-search, "
    "mp-search-sep, mp-ilp, mp-grow, mp-evolve or beam."
)


#: Its default is `windtunnel.serving.search.policies.REFINE`, which is not imported here.
refine_option = option(
    "--refine N",
    "Simulations spent on improving the best placement.  [default: 400]",
    click.IntRange(0, 1_000_000),
    default=400,
    show_default=False,
)

#: Add what a search takes besides its policy and GPUs.
search_options = together(
    option(
        "--group OP,PP",
        "Tensor and pipeline degree of the groups of mp-greedy, beam and round-robin.",
    ),
    refine_option,
    option("--allow-large", "Search though it may take minutes.", is_flag=True),
    option(
        "--workers", "Threads; the result is the same.", click.IntRange(min=1, max=1024), default=1
    ),
)


#: Add what changing a placement costs.
switch_options = together(
    option("--load-gib-s X", "Bandwidth of loading weights onto a GPU, GiB/s.", float, default=8.0),
    option("--switch-time", "What a group that changes needs besides loading.", TIME, default=0.0),
)


@dataclass(frozen=True)
class Placed:
    """Where models lie.

    Attributes:
        name: the file's name, or the policy's.
        placement: of the whole run; of its first stretch where it changes.
        schedule: where it changes.
        simulations: made to find it.
    """

    name: str
    placement: Placement
    schedule: Schedule | None = None
    simulations: int = 0


def placed(
    asked: dict[str, Any],
    spec: WorkloadSpec,
    drawn: Workload,
    profile: Profile,
    on_done: Any,
) -> Placed:
    """Return the placement that ``--placement`` or ``--policy`` names.

    Raises:
        click.UsageError: neither or both are given, or no GPUs.
    """
    from windtunnel import serving

    file, policy, gpus = asked["placement"], asked["policy"], asked["gpus"]
    if (file is None) == (policy is None):
        raise click.UsageError("expected one of --placement FILE and --policy NAME.")
    if policy is None:
        return Placed(file, placement_from(file))
    if gpus is None:
        raise click.UsageError("--policy: expected --gpus N, too.")
    effort = {"overheads": spec.overheads, **effort_from(asked, on_done)}
    if policy.startswith("sr-replace"):
        length = _stretch(policy)
        refuse_large(asked | {"policy": "sr", "refine": 0}, drawn, profile, length)
        schedule = serving.search_schedule(drawn, profile, gpus, length, **effort | {"refine": 0})
        return Placed(policy, schedule.placements[0], schedule)
    refuse_large(asked, drawn, profile)
    found = serving.search(drawn, profile, gpus, policy, group=degrees(asked["group"]), **effort)
    return Placed(policy, found.placement, None, found.simulations)


def effort_from(asked: dict[str, Any], on_done: Any) -> dict[str, Any]:
    """Return how hard a search tries: its memory, refinement and threads."""
    effort = {"refine": asked["refine"], "workers": asked["workers"], "on_done": on_done}
    return {"mem_budget": _memory(asked), **effort}


def _memory(asked: dict[str, Any]) -> float:
    """Return the bytes for weights on a GPU."""
    from windtunnel.serving import MEM_BUDGET

    return MEM_BUDGET if asked["mem_gib"] is None else asked["mem_gib"] * GIB


def refuse_large(
    asked: dict[str, Any], drawn: Workload, profile: Profile, length: float = math.inf
) -> None:
    """Check that a search is not out of all proportion, unless it was allowed to be.

    Args:
        asked: what was asked for.
        drawn: the requests.
        profile: costs and memory.
        length: of the stretches for each of which it is made, s.

    Raises:
        SpecError: it is.
    """
    from windtunnel.serving.search.cost import refuse_large_search

    if not asked["allow_large"]:
        span = float(drawn.arrival[-1] - drawn.arrival[0]) if len(drawn) else 0.0
        refuse_large_search(
            drawn,
            profile,
            asked["gpus"],
            asked["policy"],
            mem_budget=_memory(asked),
            group=degrees(asked["group"]),
            refine=asked["refine"],
            times=1 + int(span // length) if length > 0 else 1,
        )


def switch_from(asked: dict[str, Any]) -> Any:
    """Return what changing a placement costs.

    Raises:
        SpecError: a number makes no sense.
    """
    from windtunnel.serving import Switch

    bandwidth = asked["load_gib_s"] * GIB
    return Switch(bandwidth if bandwidth > 0 else math.nan, asked["switch_time"])


def _stretch(policy: str) -> float:
    """Return T of ``sr-replace-T``, s; 60 where it is left out."""
    text = policy.removeprefix("sr-replace").removeprefix("-")
    return seconds("--policy", text) if text else 60.0
