"""The sizes at which a job may run, as Morphling climbs them.

Of a job's options only those count that are faster than every option on the same shape with as few
cores. Between sizes Morphling jumps on the upper concave envelope of throughput over GPUs: at 3, 5,
6 or 7 GPUs throughput is often no better than at the power of two below, where a step of one GPU
would see no gain and stop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windtunnel.throughput.sharing import envelope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.elastic.work import Option, Work

#: Iteration times that agree to this part are the same speed.
SAME = 1e-9
#: What of a request may change: its plan, its GPUs, both (Morphling) or neither, by ablation.
FREEDOMS: tuple[str, ...] = ("both", "plans", "resources", "neither")


@dataclass(frozen=True)
class Ladder:
    """The options of one kind of job.

    Attributes:
        options: fewest GPUs first, then fastest; each faster than the others on its shape with as
            few cores.
        floor: the smallest of them: what a job needs at least (its ``minRes``).
        reference: seconds an iteration of the option asked for: throughputs are normalised by it.
    """

    options: tuple[Option, ...]
    floor: Option
    reference: float
    _larger: dict[int, list[Option]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, work: Work, freedom: str) -> Ladder:
        """Return the ladder of a job: a guaranteed one's options all keep its promise.

        Args:
            work: the job.
            freedom: one of `FREEDOMS`.
        """
        asked = work.requested
        allowed: Iterable[Option] = [o for o in work.options if _free(o, asked, freedom)]
        if work.guaranteed:
            allowed = [o for o in allowed if o.iteration_time <= asked.iteration_time * (1 + SAME)]
        options = tuple(
            sorted(undominated(allowed), key=lambda o: (o.num_gpus, o.iteration_time, o.num_cpus))
        )
        floor = min(options, key=lambda o: (o.num_gpus, o.num_cpus, o.iteration_time))
        return cls(options, floor, asked.iteration_time)

    def speed(self, option: Option) -> float:
        """Return an option's throughput over that of the option asked for."""
        return self.reference / option.iteration_time

    def slope(self, low: Option | None, high: Option) -> float:
        """Return the normalised throughput gained per GPU between two options.

        Where they have equally many GPUs, per core. None = holding nothing.
        """
        gained = self.speed(high) - (0.0 if low is None else self.speed(low))
        gpus = high.num_gpus - (0 if low is None else low.num_gpus)
        if gpus == 0 and low is not None:
            return gained / max(1, abs(high.num_cpus - low.num_cpus))
        return gained / gpus

    def larger(self, current: Option) -> list[Option]:
        """Return what a job in an option may grow to.

        Those faster with more cores on its shape, then the points of the envelope beyond it.
        """
        found = self._larger.get(id(current))  # options live as long as the run
        if found is None:
            faster = [o for o in self.options if o.iteration_time < current.iteration_time]
            more_cores = [o for o in faster if o.shape == current.shape]
            points = [current, *(o for o in faster if o.num_gpus > current.num_gpus)]
            hull = envelope([(o.num_gpus, 1 / o.iteration_time) for o in points])
            found = [*more_cores, *(points[index] for index in hull[1:])]
            self._larger[id(current)] = found
        return found


def undominated(options: Iterable[Option]) -> list[Option]:
    """Return the options that no other on the same shape and nodes beats in speed or cores.

    Of equals the first stays.
    """
    by_shape: dict[Any, list[Option]] = {}
    for option in sorted(options, key=lambda o: (o.iteration_time, o.num_cpus)):
        kept = by_shape.setdefault((option.shape, option.nodes), [])
        if not kept or option.num_cpus < kept[-1].num_cpus:
            kept.append(option)
    return [option for kept in by_shape.values() for option in kept]


def _free(option: Option, asked: Option, freedom: str) -> bool:
    """Return whether an ablation lets a job run in an option."""
    same_plan = option.plan == asked.plan
    same_size = option.num_gpus == asked.num_gpus
    if freedom == "plans":
        return same_size
    if freedom == "resources":
        return same_plan
    return freedom == "both" or option == asked
