"""Hypothesis strategies for jobs and clusters; needs hypothesis.

Times are multiples of a quarter of a second, and small: many things happen at once, and sums of
them are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.cluster.spec import ClusterSpec, NodeType

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: GPU types that are drawn.
TYPES: tuple[str, ...] = ("A100", "T4", "V100")


def jobs(
    *, max_size: int = 12, shares: bool = False, types: bool = True, memory: bool = False
) -> SearchStrategy[dict[str, list[Any]]]:
    """Return a strategy for jobs tables, as mappings of columns.

    Args:
        max_size: most jobs.
        shares: some ask for part of a GPU.
        types: some name the GPU types that serve.
        memory: they say how much memory they need.
    """
    from hypothesis import strategies as st

    def seconds(most: int) -> SearchStrategy[float]:
        return st.integers(0, 4 * most).map(lambda quarters: quarters / 4)

    columns: dict[str, SearchStrategy[Any]] = {
        "submit_time": st.one_of(st.integers(0, 3).map(float), seconds(12)),
        "duration": st.one_of(st.integers(0, 2).map(float), seconds(20)),
        "estimate": seconds(25),
        "num_gpus": st.sampled_from([0.25, 0.5, 1.0, 2.0] if shares else [0.0, 1.0, 1.0, 2.0, 5.0]),
        "priority": st.integers(0, 2).map(float),
        "user": st.sampled_from(["ada", "bob", None]),
        "vc": st.sampled_from(["x", "y", None]),
    }
    if types:
        columns["gpu_type"] = st.sampled_from([None, None, *TYPES, "|".join(TYPES[:2])])
    if memory:
        columns["mem_gib"] = st.sampled_from([None, 1.0, 8.0, 24.0])

    def column(name: str, size: int) -> SearchStrategy[list[Any]]:
        return st.lists(columns[name], min_size=size, max_size=size)

    return st.integers(0, max_size).flatmap(
        lambda size: st.fixed_dictionaries({name: column(name, size) for name in columns})
    )


def clusters(
    *, max_nodes: int = 4, types: bool = True, memory: bool = False
) -> SearchStrategy[ClusterSpec]:
    """Return a strategy for clusters of one or two node types; sometimes a pool.

    Args:
        max_nodes: most nodes of a type.
        types: some tell their GPU types.
        memory: nodes have so much memory.
    """
    from hypothesis import strategies as st

    kind = st.sampled_from([None, *TYPES]) if types else st.none()
    node = st.builds(
        NodeType,
        count=st.integers(1, max_nodes),
        gpus=st.sampled_from([1, 2, 4, 8]),
        gpu_type=kind,
        mem_gib=st.sampled_from([16.0, 64.0]) if memory else st.none(),
    )
    several = st.lists(node, min_size=1, max_size=2).map(lambda n: ClusterSpec(tuple(n), "drawn"))
    pools = st.builds(ClusterSpec.pool, st.integers(1, 16))
    return several if memory else st.one_of(several, several, pools)
