"""The machines of the PAI trace: its nodes, and the cluster that they make."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.companions import NODE_COLUMNS, companion
from windtunnel.errors import SpecError, TraceError
from windtunnel.traces.node_table import node_types_of

#: How the table names the type of machines without GPUs.
_NO_GPU = "CPU"


def nodes_of(machines: pa.Table) -> pa.Table:
    """Return the nodes (`NODE_COLUMNS`), in the file's order; machines without GPUs have no type.

    Args:
        machines: the machine table, each machine once.
    """
    none = pc.or_(pc.equal(machines["cap_gpu"], 0.0), pc.equal(machines["gpu_type"], ""))
    bare = pc.and_(pc.equal(machines["gpu_type"], _NO_GPU), pc.equal(machines["cap_gpu"], 0.0))
    without = pc.fill_null(pc.or_kleene(none, bare), False)
    return companion(
        NODE_COLUMNS,
        {
            "node": machines["machine"],
            "gpu_type": pc.if_else(without, pa.scalar(None, pa.string()), machines["gpu_type"]),
            "num_gpus": machines["cap_gpu"],
            "num_cpus": machines["cap_cpu"],
            "mem_gib": machines["cap_mem"],
        },
    )


def cluster_of(nodes: pa.Table, name: str, file: str) -> tuple[ClusterSpec | None, tuple[str, ...]]:
    """Return the cluster, nodes numbered in the file's order, and notes: why there is none.

    Raises:
        TraceError: the machines make no cluster (a type's name holds ``|``).
    """
    if not pc.sum(nodes["num_gpus"]).as_py():
        return None, ("No machine has a GPU: there is no cluster to replay the trace on.",)
    try:
        return ClusterSpec(node_types_of(nodes), name), ()
    except SpecError as error:
        raise TraceError(file, "machines that make a cluster", hint=f"({error})") from error
