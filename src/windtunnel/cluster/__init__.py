"""Clusters: what they are made of, and the published ones by name."""

from windtunnel.cluster.presets import PRESETS, preset
from windtunnel.cluster.spec import ClusterSpec, NodeType, parse_cluster

__all__ = ["PRESETS", "ClusterSpec", "NodeType", "parse_cluster", "preset"]
