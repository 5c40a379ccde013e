"""The placements by name.

Whole GPUs of nodes, and pools, have placements of their own, which are fast; where devices, cores
or memory are modelled the scored ones serve, which take options:
``lowest_utilization:gang=fill:ties=name``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.placements.best_fit import BestFit
from windtunnel.placements.pool import Pool
from windtunnel.placements.scored_catalogue import SCORED, resolve_scored
from windtunnel.placements.spread import Spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Placement
    from windtunnel.sim.fragmentation import TargetWorkload

#: Placements of whole GPUs.
WHOLE: dict[str, type[Placement]] = {p.name: p for p in (BestFit, Pool, Spread)}
#: Every placement's name.
PLACEMENTS: tuple[str, ...] = tuple(sorted({*WHOLE, *SCORED}))
#: Options of scored placements; see `windtunnel.placements.scored`.
OPTIONS: tuple[str, ...] = ("scores", "ties", "gang", "topology", "weights")


def split_placement(text: str | None) -> tuple[str | None, dict[str, str]]:
    """Return the name and the options of a placement.

    Raises:
        SpecError: unknown name or option; the nearest is suggested.

    >>> split_placement("fgd:ties=index")
    ('fgd', {'ties': 'index'})
    """
    if text is None:
        return None, {}
    name, *words = text.split(":")
    if name not in PLACEMENTS:
        raise SpecError.unknown("placement", name, PLACEMENTS)
    options = {}
    for word in words:
        option, _, value = word.partition("=")
        if option not in OPTIONS or not value:
            raise SpecError.unknown(f"placement {text}", option, OPTIONS)
        options[option] = value
    return name, options


def is_scored(text: str | None) -> bool:
    """Return whether a placement is one for nodes whose devices are modelled, and for no others.

    Raises:
        SpecError: unknown name or option.
    """
    name, options = split_placement(text)
    return bool(options) or (name is not None and name not in WHOLE)


def checked_topology(text: str | None, cluster: ClusterSpec) -> str:
    """Return a placement's ``topology`` option, ``none`` where it does not look at racks.

    Args:
        text: a placement's name, with options.
        cluster: where it is to be used.

    Raises:
        SpecError: unknown name or option, or it looks at racks, and the cluster states none.
    """
    name, options = split_placement(text)
    topology = options.get("topology", "none")
    if topology != "none" and (name == Pool.name or not cluster.racks):
        raise SpecError(
            "placement",
            f"{text!r} keeps jobs within racks, and there are none in {cluster.describe()}. "
            "Expected nodes, and nodes_per_rack for every node type (in the cluster's TOML file).",
        )
    return topology


def resolve_placement(
    text: str | None,
    cluster: ClusterSpec,
    *,
    devices: bool = False,
    seed: int = 0,
    workload: Callable[[], TargetWorkload] | None = None,
) -> Placement:
    """Return the placement to use.

    On a pool there is one "node", so every placement is the same one; it is called ``pool`` there.

    Args:
        text: a placement's name, with options; None = ``pool`` on a pool, else ``best_fit``.
        cluster: where it is to be used.
        devices: whether the nodes' devices, cores and memory are modelled.
        seed: seed of what is random.
        workload: makes the target workload, for placements that need one.

    Raises:
        SpecError: unknown name or option (the nearest is suggested), or it does not suit.
    """
    name, options = split_placement(text)
    if cluster.is_pool or name == Pool.name:
        return Pool()
    if not devices:
        if is_scored(text):
            message = f"{text!r} looks at devices, cores or memory, and none are modelled here"
            raise SpecError("placement", f"{message}; expected {' or '.join(WHOLE)}.")
        return WHOLE[name or BestFit.name]()
    kind = SCORED[name or BestFit.name]
    target = workload() if kind.needs_workload and workload is not None else None
    return resolve_scored(kind.name, **options, seed=seed, workload=target)
