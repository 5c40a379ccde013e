"""`FlightOptions`: what a run is asked for besides jobs, cluster and policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.placements import label_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from windtunnel.energy.cluster_power import PowerModel
    from windtunnel.energy.governing import Governing
    from windtunnel.energy.power_policies import NodeSleep, PowerCap, StartShift
    from windtunnel.sim.disruptions import Disruptions
    from windtunnel.sim.slowdown import Slowdown
    from windtunnel.study.resume_costs import ResumeCost

#: How jobs may share the GPUs of a node.
SHARING: tuple[str, ...] = ("devices", "pooled")
#: What of a node constrains.
RESOURCES: tuple[str, ...] = ("all", "gpus")


@dataclass(frozen=True)
class FlightOptions:
    """The options of a run; see `simulate` for each of them."""

    queueing: str | None = None
    placement: str | Any | None = None
    sharing: str | None = None
    resources: str = "all"
    bind_types: tuple[str, ...] | None = None
    arrivals: str | None = None
    compat: str | None = None
    estimates: str | None = None
    events: str = "batch"
    preemption: str = "feasible"
    decide_every: float | str | None = None
    engine: str = "auto"
    seed: int = 0
    save_time: ResumeCost = 0.0
    restore_time: ResumeCost = 0.0
    slowdown: Slowdown | str | dict[str, Any] | None = None
    until: float | None = None
    oversize: str = "raise"
    incomplete: str = "raise"
    disruptions: Disruptions | dict[str, Any] | str | None = None
    throughputs: Any = None
    penalty: float | Mapping[str, float] | None = None
    models: Mapping[str, Any] | None = None
    power: PowerModel | dict[str, Any] | str | None = None
    power_cap: PowerCap | dict[str, Any] | str | float | None = None
    shift: StartShift | dict[str, Any] | str | None = None
    node_sleep: NodeSleep | dict[str, Any] | str | None = None


def governing_of(options: FlightOptions) -> Governing | None:
    """Return the model and policies of power that were asked for; None = none were.

    Raises:
        SpecError, TraceError: one is wrong.
    """
    given = (options.power, options.power_cap, options.shift, options.node_sleep)
    if all(one is None for one in given):
        return None
    from windtunnel.energy.governing import Governing  # it brings the readers of traces

    return Governing.of(*given)


def settings_of(
    options: FlightOptions, governing: Governing | None, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return options as plain data, for an outcome's settings.

    Args:
        options: what was asked for; what is not plain data there is left out.
        governing: what was asked for of power, which tells itself.
        without: options that such runs do not have.
    """
    plain = replace(
        options,
        disruptions=None,
        slowdown=None,
        throughputs=None,
        models=None,
        placement=label_of(options.placement),
        save_time=_plain_cost(options.save_time),
        restore_time=_plain_cost(options.restore_time),
        power=None,
        power_cap=None,
        shift=None,
        node_sleep=None,
    )
    told = {**asdict(plain), **({} if governing is None else governing.to_mapping())}
    return {name: value for name, value in told.items() if name not in without}


def _plain_cost(cost: ResumeCost) -> Any:
    """Return a cost of resuming as plain data; of a function, its name."""
    if isinstance(cost, Mapping):
        return {str(key): value for key, value in cost.items()}
    return getattr(cost, "__name__", "function") if callable(cost) else cost


def seconds(name: str, value: float) -> float:
    """Return a time option as a float.

    Raises:
        SpecError: it is negative or not a number.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise SpecError(name, f"found {value!r}; expected seconds >= 0")
    return number
