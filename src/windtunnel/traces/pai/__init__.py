"""Alibaba PAI v2020: the seven released tables as one trace (Weng et al., NSDI 2022)."""
