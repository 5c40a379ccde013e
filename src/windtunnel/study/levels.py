"""What ``topology`` stands for: words, Slurm's topology.conf, or Kueue's Topology and Nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from windtunnel.cluster.levels import Levels
from windtunnel.errors import SpecError, quote

_YAML = (".yaml", ".yml")


def levels_of(given: Any) -> Levels | None:
    """Return the levels that a value stands for; None = none were given.

    Args:
        given: ``block=72,rack=18``, a ``.conf`` of Slurm's, a ``.yaml`` file (or a folder) of
            Kueue's with one Topology and its Nodes, or `Levels`.

    Raises:
        SpecError, TraceError: it is not understood.
    """
    if given is None or isinstance(given, Levels):
        return given
    if not isinstance(given, str | Path):
        raise SpecError("topology", f"found {quote(given)}; expected words or a file.")
    path = Path(given)
    if path.suffix == ".conf":
        from windtunnel.site.slurm_levels import read_topology_conf

        return read_topology_conf(path)
    if path.suffix in _YAML or path.is_dir():
        return _of_manifests(path)
    return Levels.parse(str(given))


def _of_manifests(path: Path) -> Levels:
    """Return the levels of Kueue's manifests; the k-th Node is the cluster's k-th."""
    from windtunnel.policies.kueue.manifests import read_manifests

    manifests = read_manifests(path, queues=False)
    if len(manifests.topologies) != 1 or not manifests.nodes:
        message = (
            f"{path}: found {len(manifests.topologies)} Topology and {len(manifests.nodes):,} Node "
            "objects; expected one Topology and its Nodes."
        )
        raise SpecError("topology", message)
    labels = manifests.topologies[0].levels
    names = tuple(label.rpartition("/")[2] for label in labels[:-1])
    paths = []
    for node in manifests.nodes:
        lacking = [label for label in labels[:-1] if label not in node.labels]
        if lacking:
            message = f"{path}: Node {quote(node.name)} has no label {quote(lacking[0])}."
            raise SpecError("topology", message)
        paths.append(tuple(node.labels[label] for label in labels[:-1]))
    return Levels(names, paths=tuple(paths))
