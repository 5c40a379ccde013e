"""`Around`: what surrounds a run, whoever schedules: outages, slow-downs, policies of power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote
from windtunnel.sim.disruptions import Disruptions, parse_disruptions
from windtunnel.sim.disruptions.plan import resolve
from windtunnel.sim.neighbours import Neighbours
from windtunnel.sim.slowdown import resolve_slowdown
from windtunnel.study.flight_options import governing_of
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy.governing import Governing
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.slowdown import Slowdown
    from windtunnel.study.flight_options import FlightOptions


@dataclass(frozen=True)
class Around:
    """What surrounds a run.

    Attributes:
        disruptions: what disrupts it; None = nothing.
        slowdown: how jobs slow each other; None = not at all.
        governing: the model and policies of power; None = it has none.
        decide_every: seconds between decisions; None = when something happens.
    """

    disruptions: Disruptions | None
    slowdown: Slowdown | None
    governing: Governing | None
    decide_every: float | None

    def settings(self) -> dict[str, Any]:
        """Return it as plain data; policies of power tell themselves."""
        return {
            "disruptions": None if self.disruptions is None else self.disruptions.to_mapping(),
            "slowdown": None if self.slowdown is None else self.slowdown.to_mapping(),
        }

    def extras(
        self, problem: Problem, cluster: ClusterSpec, options: FlightOptions
    ) -> tuple[Problem, dict[str, Any], list[str]]:
        """Return the jobs to fly, what an engine gets besides them, and what to tell of it.

        Raises:
            SpecError: something does not go with the jobs or the cluster.
        """
        extra: dict[str, Any] = {}
        if self.governing is not None and self.governing.acts:
            problem, extra["power"] = self.governing.plan(
                problem, cluster, options.seed, options.oversize
            )
        if self.disruptions is not None:
            extra["disruptions"] = resolve(self.disruptions, problem, cluster, options.seed)
        notes = [note for plan in extra.values() for note in plan.notes]
        if self.slowdown is not None:
            neighbours = Neighbours(self.slowdown, problem, cluster)
            extra["slowdown"] = neighbours
            notes += neighbours.notes
        return problem, extra, notes


def around(options: FlightOptions, *, as_pool: bool) -> Around:
    """Return what was asked for, checked.

    Args:
        options: of the run.
        as_pool: nodes are not told apart.

    Raises:
        SpecError, TraceError: one of them is wrong, or needs nodes.
    """
    governing = governing_of(options)
    if governing is not None:
        governing.check(as_pool=as_pool)
    interval = options.decide_every
    if interval is not None:
        interval = seconds("decide_every", interval, positive=True)
    model = resolve_slowdown(options.slowdown)
    return Around(_disruptions(options), model, governing, interval)


def _disruptions(options: FlightOptions) -> Disruptions | None:
    """Return what disrupts the run; None = nothing does, and it is a plain one.

    Raises:
        SpecError: the description is wrong.
    """
    given = options.disruptions
    chosen = parse_disruptions(given) if isinstance(given, str) else given
    if isinstance(chosen, dict):
        chosen = Disruptions.from_mapping(chosen, source="disruptions")
    if chosen is None or (isinstance(chosen, Disruptions) and chosen.is_empty):
        return None
    if not isinstance(chosen, Disruptions):
        raise SpecError("disruptions", f"found {quote(chosen)}; expected a Disruptions or a file.")
    return chosen
