"""Workloads, jobs and pods of Kubernetes, Kueue and Volcano, as their API prints them."""

from windtunnel.traces.kubernetes.reader import read_kueue

__all__ = ["read_kueue"]
