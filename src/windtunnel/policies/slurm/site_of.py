"""Slurm's view of a run's cluster, and a cluster as Slurm's files describe it."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.errors import PolicyError, SpecError
from windtunnel.site.sacctmgr import read_sacctmgr
from windtunnel.site.slurm import SlurmNode, SlurmPartition, SlurmSettings, SlurmSite
from windtunnel.site.slurm_conf import read_slurm_conf
from windtunnel.site.slurm_reservations import read_reservations
from windtunnel.site.slurm_words import text_of

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem

#: Ending of files of what ``scontrol show reservation`` printed.
_HOLDS = ".res"
#: Endings of files of QOS and associations beside slurm.conf.
_ACCOUNTS = (".sacctmgr", ".assoc", ".qos", ".cfg")


def read_site_folder(folder: str | Path) -> SlurmSite:
    """Return the site that a folder of Slurm's files describes.

    ``slurm.conf``, with ``gres.conf`` and ``topology.conf`` beside it, and what sacctmgr says of
    QOS and associations in files that end in ``.sacctmgr``, ``.assoc``, ``.qos`` or ``.cfg``, and
    scontrol of reservations in files that end in ``.res``.

    Raises:
        TraceError: a file is missing, or not understood.
    """
    folder = Path(folder)
    site = read_slurm_conf(folder)
    beside = folder if folder.is_dir() else folder.parent
    files = sorted(file for file in beside.iterdir() if file.suffix in _ACCOUNTS)
    if files:
        qos, associations = read_sacctmgr(*files)
        site = msgspec.structs.replace(site, qos=qos, associations=associations)
    names = tuple(node.name for node in site.nodes)
    held = sorted(file for file in beside.iterdir() if file.suffix == _HOLDS)
    holds = [hold for file in held for hold in read_reservations(text_of(file), str(file), names)]
    site = msgspec.structs.replace(site, reservations=tuple(holds))
    if not site.partitions or not site.nodes:
        what = "nodes" if not site.nodes else "partitions"
        raise SpecError(f"slurm_conf {folder}", f"found no {what}; expected NodeName and "
                        "PartitionName lines.")  # fmt: skip
    return site


def cluster_of_site(site: SlurmSite, name: str) -> ClusterSpec:
    """Return a site's nodes as a cluster of GPUs: cores and memory are Slurm's own books.

    Raises:
        SpecError: it has no GPU, or a node has several types of them.
    """
    for node in site.nodes:
        if len(node.gpus) > 1:
            types = ", ".join(sorted(node.gpus))
            raise SpecError(f"slurm_conf {name}", f"node {node.name} has GPUs of several types "
                            f"({types}); expected one type a node.")  # fmt: skip
    kinds = ((sum(n.gpus.values()), next(iter(n.gpus), "") or None) for n in site.nodes)
    alike = tuple(NodeType(len(list(group)), gpus, kind) for (gpus, kind), group in groupby(kinds))
    return ClusterSpec(alike, name)


def site_of_problem(problem: Problem) -> SlurmSite:
    """Return the site that a cluster alone describes: one partition, Slurm's own defaults."""
    nodes = tuple(
        SlurmNode(f"n{at}", cpus=max(int(gpus), 1), gpus={(kind or "").lower(): int(gpus)})
        for at, (gpus, kind) in enumerate(zip(problem.sizes, problem.types, strict=True))
    )
    names = tuple(node.name for node in nodes)
    return SlurmSite(
        nodes=nodes,
        partitions=(SlurmPartition("all", names, is_default=True),),
        settings=SlurmSettings(select=frozenset({"CR_CORE"})),
    )


def check_nodes(site: SlurmSite, problem: Problem) -> None:
    """Check that the run's nodes are the site's.

    Raises:
        PolicyError: they are not.
    """
    has = [sum(node.gpus.values()) for node in site.nodes]
    if has == problem.sizes.tolist():
        return
    found = f"{len(problem.sizes)} nodes with {problem.sizes.sum()} GPUs"
    expected = f"{len(has)} nodes with {sum(has)} GPUs, in the order of slurm.conf"
    message = f"found a cluster of {found}; expected {expected}: leave --cluster out"
    raise PolicyError("slurm", message)
