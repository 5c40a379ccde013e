"""Alibaba PAI v2020: the seven released tables as one trace (Weng et al., NSDI 2022)."""

from windtunnel.traces.pai.reader import read_pai

__all__ = ["read_pai"]
