"""Kueue: quotas of queues in a tree of cohorts, preemption, and places in a topology."""

from windtunnel.policies.kueue.policy import Kueue

__all__ = ["Kueue"]
