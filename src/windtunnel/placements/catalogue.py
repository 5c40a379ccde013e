"""The placements by name.

Whole GPUs of nodes, and pools, have placements of their own, which are fast; where devices, cores
or memory are modelled the scored ones serve, which take options:
``lowest_utilization:gang=fill:ties=name``. A user's own is a function
(`windtunnel.placements.asked`), given itself or by a name as in `windtunnel.plugins`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from windtunnel.cluster.topology.node_tree import FILLS, NodeTree
from windtunnel.errors import SpecError
from windtunnel.placements.asked import as_placement
from windtunnel.placements.load import BestFitDevices
from windtunnel.placements.scored_catalogue import resolve_scored, scored_placements
from windtunnel.placements.tree import Tree, TreeOfDevices
from windtunnel.placements.whole import BestFit, Pool, Spread
from windtunnel.plugins import Catalogue, parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.placements.scored import ScoredPlacement
    from windtunnel.sim.contract import Placement
    from windtunnel.sim.fragmentation import TargetWorkload

_Score = TypeVar("_Score", bound="Callable[..., Any]")

#: Placements of whole GPUs.
WHOLE: dict[str, type[Any]] = {p.name: p for p in (BestFit, Pool, Spread, Tree)}


def _built_in() -> dict[str, type[Any]]:
    """Return every placement, by name; of those that have two forms the scored one."""
    return dict(sorted({**WHOLE, **scored_placements()}.items()))


PLACEMENTS: Catalogue[type[Any]] = Catalogue(
    "placement", "placements", _built_in, made=as_placement
)
#: Options of scored placements; see `windtunnel.placements.scored`.
OPTIONS: tuple[str, ...] = ("scores", "ties", "gang", "topology", "weights")


def placement(name: str) -> Callable[[_Score], _Score]:
    """Register the decorated function as the placement ``name``.

    The function gets a node that has room and what would go there
    (`windtunnel.placements.asked.CandidateNode`, `Request`), and returns how good the node is: the
    higher the better.

    Args:
        name: what users type; a second registration replaces the first.

    Raises:
        SpecError: the name is a built-in placement's.

    >>> @placement("emptiest-example")
    ... def emptiest(node, request):
    ...     return node.free_gpus
    """
    return PLACEMENTS.under(name)


class Chosen(NamedTuple):
    """A placement that was asked for.

    Attributes:
        name: its name; None = the default.
        options: its options, as texts.
        kind: its class; None = the default.
    """

    name: str | None
    options: dict[str, str]
    kind: type[Any] | None


def split_placement(given: Any) -> Chosen:
    """Return the placement that an argument asks for, with its options.

    Args:
        given: None, a name with or without options, or a function.

    Raises:
        SpecError: unknown name or option; the nearest is suggested.

    >>> split_placement("fgd:ties=index")[:2]
    ('fgd', {'ties': 'index'})
    """
    if given is None:
        return Chosen(None, {}, None)
    if not isinstance(given, str):
        kind = PLACEMENTS.resolve(given)
        return Chosen(kind.name, {}, kind)
    name, words = PLACEMENTS.split(given)
    if name == Tree.name:
        return Chosen(name, parameters(words, ("fill",), where=given, first="fill"), Tree)
    options = parameters(words, OPTIONS, where=f"placement {given}")
    return Chosen(name, options, PLACEMENTS.resolve(name))


def label_of(given: Any) -> str | None:
    """Return what results call a placement: the text that names it, or the function's name."""
    return given if given is None or isinstance(given, str) else split_placement(given).name


def is_scored(given: Any) -> bool:
    """Return whether a placement is one for nodes whose devices are modelled, and for no others.

    Raises:
        SpecError: unknown name or option.
    """
    name, options, _ = split_placement(given)
    if name == Tree.name:
        return False
    return bool(options) or (name is not None and name not in WHOLE)


def tree_of(given: Any, cluster: ClusterSpec) -> NodeTree | None:
    """Return the tree in which a placement places jobs; None = it looks at no levels.

    Raises:
        SpecError: unknown name or option.
    """
    name, options, _ = split_placement(given)
    if name != Tree.name or cluster.is_pool:
        return None
    fill = options.get("fill", FILLS[0])
    if fill not in FILLS:
        raise SpecError.unknown("placement tree", fill, FILLS)
    return NodeTree(cluster, fill)


def scored_placement(name: str) -> type[ScoredPlacement]:
    """Return a placement for nodes whose devices are modelled, by its name without options.

    Raises:
        SpecError: there is none such; the nearest name is suggested.
    """
    kind: type[Any] = PLACEMENTS.resolve(name)
    if kind in (Pool, Tree):
        message = f"{kind.name!r} scores no nodes; expected a placement that does."
        raise SpecError("placement", message)
    return kind


def checked_topology(given: Any, cluster: ClusterSpec) -> str:
    """Return a placement's ``topology`` option, ``none`` where it does not look at racks.

    Args:
        given: a placement, as for `split_placement`.
        cluster: where it is to be used.

    Raises:
        SpecError: unknown name or option, or it looks at racks, and the cluster states none.
    """
    name, options, _ = split_placement(given)
    topology = options.get("topology", "none")
    if topology != "none" and (name == Pool.name or not cluster.racks):
        raise SpecError(
            "placement",
            f"{label_of(given)!r} keeps jobs within racks, and there are none in "
            f"{cluster.describe()}. "
            "Expected nodes, and nodes_per_rack for every node type (in the cluster's TOML file).",
        )
    return topology


def resolve_placement(
    given: Any,
    cluster: ClusterSpec,
    *,
    devices: bool = False,
    seed: int = 0,
    workload: Callable[[], TargetWorkload] | None = None,
) -> Placement:
    """Return the placement to use.

    On a pool there is one "node", so every placement is the same one; it is called ``pool`` there.

    Args:
        given: a placement's name, with options, or a function; None = ``pool`` on a pool, else
            ``best_fit``.
        cluster: where it is to be used.
        devices: whether the nodes' devices, cores and memory are modelled.
        seed: seed of what is random.
        workload: makes the target workload, for placements that need one.

    Raises:
        SpecError: unknown name or option (the nearest is suggested), or it does not suit.
    """
    name, options, kind = split_placement(given)
    if cluster.is_pool or name == Pool.name:
        return Pool()
    tree = tree_of(given, cluster)
    if tree is not None:
        return TreeOfDevices(tree) if devices else Tree(tree)
    if not devices:
        if is_scored(given):
            message = (
                f"{label_of(given)!r} looks at devices, cores or memory, and none are modelled"
            )
            raise SpecError("placement", f"{message} here; expected {' or '.join(WHOLE)}.")
        whole: Placement = WHOLE[name or BestFit.name]()
        return whole
    scored: type[ScoredPlacement] = BestFitDevices if kind is None else kind
    target = workload() if scored.needs_workload and workload is not None else None
    return resolve_scored(scored, **options, seed=seed, workload=target)
