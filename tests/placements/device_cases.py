"""Small random clusters, demands and sequences of takes and gives, for hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from windtunnel.cluster.devices import DeviceDemand, DeviceNode, device_demand
from windtunnel.sim.fragmentation import Shape, TargetWorkload, target_workload

TYPES = ("A", "B", None)
SHARES = (100, 250, 330, 500, 700)


@dataclass(frozen=True)
class Case:
    """A cluster, demand classes, a target workload, and what happens.

    Attributes:
        nodes: the cluster.
        demands: demand classes.
        workload: the target workload.
        events: class to place (0 or more), or -1 - i: give back the i-th job that runs.
    """

    nodes: tuple[DeviceNode, ...]
    demands: tuple[DeviceDemand, ...]
    workload: TargetWorkload
    events: tuple[int, ...]


def nodes() -> st.SearchStrategy[tuple[DeviceNode, ...]]:
    def named(
        parts: list[tuple[int, str | None, int | None, int | None, str]],
    ) -> tuple[DeviceNode, ...]:
        return tuple(
            DeviceNode(f"{letter}{index}", gpus, kind if gpus else None, cores, mem)
            for index, (gpus, kind, cores, mem, letter) in enumerate(parts)
        )

    one = st.tuples(
        st.integers(0, 4),
        st.sampled_from(TYPES),
        st.sampled_from((None, 4000, 9000, 16000)),
        st.sampled_from((None, 64, 100)),
        st.sampled_from("zxab"),
    )
    return st.lists(one, min_size=1, max_size=6).map(named)


@st.composite
def requests(draw: st.DrawFn, *, pooled: bool) -> dict[str, object]:
    whole = draw(st.integers(0, 3))
    share = 0 if whole and not pooled else draw(st.sampled_from((0, *SHARES)))
    types = draw(st.sampled_from((None, frozenset("A"), frozenset("AB"))))
    return {
        "gpus": whole,
        "milli": share,
        "types": types,
        "pooled": pooled,
        "cores": draw(st.sampled_from((0, 500, 1500, 4000))),
        "mem": draw(st.sampled_from((0, 8, 40))),
        "count": draw(st.sampled_from((1, 1, 1, 2, 3, 6))),
    }


@st.composite
def cases(draw: st.DrawFn, *, pooled: bool = False) -> Case:
    cluster = draw(nodes())
    asked = draw(st.lists(requests(pooled=pooled), min_size=1, max_size=5))
    shapes = draw(
        st.lists(
            st.tuples(
                st.builds(
                    Shape,
                    cores=st.sampled_from((0, 500, 1500, 4000)),
                    milli=st.sampled_from((0, *SHARES, 1000)),
                    gpus=st.integers(0, 2),
                    types=st.sampled_from(("", "A", "A|B")),
                ),
                st.integers(1, 9),
            ),
            min_size=1,
            max_size=6,
        )
    )
    return Case(
        cluster,
        tuple(device_demand(cluster, **request) for request in asked),
        target_workload(shapes),
        tuple(draw(st.lists(st.integers(-4, len(asked) - 1), max_size=25))),
    )
