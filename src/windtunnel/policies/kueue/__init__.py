"""Kueue: quotas of queues in a tree of cohorts, preemption, and places in a topology."""
