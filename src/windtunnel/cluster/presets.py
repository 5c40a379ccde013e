"""The published clusters, by name, with what each count rests on.

* ``seren``, ``kalos``: Hu et al., NSDI'24: 286 and 302 nodes of 8 A100-80GB, 128 threads, 1 / 2 TB.
* ``pai``: Weng et al., NSDI'22, released machine table: 1,897 nodes, 6,742 GPUs, 156,576 cores.
  MISC pools K40m, K80 and M60.
* ``openb``: Weng et al., ATC'23, released GPU node list: 1,213 nodes, 6,212 GPUs.
* ``helios-*``: Hu et al., SC'21, nodes a cluster; ``helios`` is the four together, 6,416 GPUs (the
  released daily series average 6,220, because nodes come and go).
* ``morphling``: Yuan et al., MLSys'25, the simulator's settings: 8 nodes of 8 A800, 96 cores and
  1,600 GB.
* ``philly``: Jeon et al., ATC'19. The machine list mixes 2- and 8-GPU machines and changes over
  time; this is the 352 nodes x 8 GPUs that the QSSF study (HeliosArtifact) assumes for eleven VCs.
"""

from __future__ import annotations

from typing import Any

from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.errors import SpecError, WindtunnelError, quote
from windtunnel.plugins import Catalogue

_MIB = 1.0 / 1024.0

_HELIOS_NODES = {"venus": 133, "earth": 143, "saturn": 262, "uranus": 264}

#: (count, GPUs a node, type, cores, MiB of memory), in the order of the released list's models.
_OPENB = (
    (549, 8, "G2", 96, 393216),
    (387, 2, "T4", 104, 524288),
    (17, 4, "T4", 96, 393216),
    (3, 1, "P100", 8, 61440),
    (107, 2, "P100", 16, 122880),
    (22, 2, "P100", 64, 262144),
    (2, 2, "P100", 8, 61440),
    (19, 1, "V100M16", 8, 32768),
    (28, 4, "V100M16", 32, 131072),
    (7, 8, "V100M16", 64, 262144),
    (1, 8, "V100M16", 82, 344064),
    (9, 4, "V100M32", 48, 376832),
    (21, 8, "V100M32", 96, 786432),
    (39, 8, "G3", 128, 786432),
    (2, 1, "A10", 128, 1048576),
)

PRESETS: dict[str, ClusterSpec] = {
    "seren": ClusterSpec((NodeType(286, 8, "A100", 128, 1024),), "seren"),
    "kalos": ClusterSpec((NodeType(302, 8, "A100", 128, 2048),), "kalos"),
    "philly": ClusterSpec((NodeType(352, 8),), "philly"),
    "pai": ClusterSpec(
        (
            NodeType(280, 8, "MISC", 96, 512),
            NodeType(798, 2, "P100", 64, 512),
            NodeType(497, 2, "T4", 96, 512),
            NodeType(45, 8, "V100", 96, 384),
            NodeType(59, 8, "V100", 96, 512),
            NodeType(135, 8, "V100M32", 96, 384),
            NodeType(83, 0, None, 96, 512),
        ),
        "pai",
    ),
    "openb": ClusterSpec(
        tuple(NodeType(n, gpus, kind, cpus, mib * _MIB) for n, gpus, kind, cpus, mib in _OPENB),
        "openb",
    ),
    "morphling": ClusterSpec((NodeType(8, 8, "A800", 96, 1600e9 / 2**30),), "morphling"),
    "helios": ClusterSpec((NodeType(sum(_HELIOS_NODES.values()), 8),), "helios"),
    **{
        f"helios-{name}": ClusterSpec((NodeType(nodes, 8),), f"helios-{name}")
        for name, nodes in _HELIOS_NODES.items()
    },
}


def as_cluster(name: str, given: Any) -> ClusterSpec:
    """Return the cluster that an object is: a `ClusterSpec`, or a function that returns one.

    Raises:
        SpecError: it is none.
    """
    try:
        found = given() if callable(given) and not isinstance(given, type) else given
    except WindtunnelError:
        raise
    except (Exception, SystemExit) as error:  # whatever the user's function raises
        message = f"{quote(name)} raised {type(error).__name__} ({error})."
        raise SpecError("cluster", message) from error
    if not isinstance(found, ClusterSpec):
        expected = "expected a ClusterSpec, or a function without arguments that returns one"
        raise SpecError(f"cluster {name}".rstrip(), f"found {quote(found)}; {expected}.")
    return found


#: The clusters by name, as in `windtunnel.plugins`.
SITES: Catalogue[ClusterSpec] = Catalogue("cluster", "sites", PRESETS, made=as_cluster)


def preset(name: str) -> ClusterSpec:
    """Return a published cluster.

    Raises:
        SpecError: no such preset; the nearest name is suggested.

    >>> preset("pai").num_gpus
    6742
    """
    try:
        return PRESETS[name.lower()]
    except KeyError:
        raise SpecError.unknown("cluster", name, PRESETS) from None
