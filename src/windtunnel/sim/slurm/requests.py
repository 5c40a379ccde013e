"""`SlurmRequest`: what a job asks Slurm for, as sbatch's options say it."""

from __future__ import annotations

import msgspec


class SlurmRequest(msgspec.Struct, frozen=True):
    """A job, or one task of an array.

    Attributes:
        identity: Slurm's job id; of an array's tasks the array's.
        submit: s, by which accrual of age begins where nothing else does.
        partitions: those it may run in; empty = the default one.
        min_nodes, max_nodes: nodes (``-N``); None of the latter = any number.
        cpus: processors in all (tasks x processors of each).
        node_cpus: processors on each node (``--ntasks-per-node``); 0 = any.
        gpus, node_gpus: GPUs in all (``--gpus``), or on each node (``--gres``).
        gpu_types: lower case; one of them will do, empty = any.
        memory, cpu_memory: MB on each node or for each processor; None = the partition's default.
        limit: s (``--time``); None = the partition's.
        array, array_limit: which array, "" = none, and how many tasks may run at once (``%``).
        nodes, excluded: names (``-w``, ``-x``).
        features: all are needed (``--constraint=a&b``).
        licenses: how many it needs of each (``--licenses``).
    """

    identity: int
    submit: float = 0.0
    user: str = ""
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    min_nodes: int = 1
    max_nodes: int | None = None
    cpus: int = 1
    node_cpus: int = 0
    gpus: int = 0
    node_gpus: int = 0
    gpu_types: frozenset[str] = frozenset()
    memory: int | None = None
    cpu_memory: int | None = None
    exclusive: bool = False
    limit: int | None = None
    nice: int = 0
    array: str = ""
    array_limit: int = 0
    task: int = 0
    reservation: str = ""
    nodes: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()
    licenses: dict[str, int] = {}
