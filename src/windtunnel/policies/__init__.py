"""Policies: who runs next; one family a file."""

from windtunnel.policies.catalogue import POLICIES, policy, resolve_policy
from windtunnel.policies.quota import Quota
from windtunnel.policies.quotas import QueueQuota, Quotas
from windtunnel.policies.reserving_packing import ReservingPacking

__all__ = [
    "POLICIES",
    "QueueQuota",
    "Quota",
    "Quotas",
    "ReservingPacking",
    "policy",
    "resolve_policy",
]
