"""Clusters: what they are made of, and the published ones by name."""

from windtunnel.cluster.parse import parse_cluster
from windtunnel.cluster.presets import PRESETS, preset
from windtunnel.cluster.spec import ClusterSpec, NodeType

__all__ = ["PRESETS", "ClusterSpec", "NodeType", "parse_cluster", "preset"]
