"""Policies: who runs next; one family a file."""

from windtunnel.policies.catalogue import ALIASES, POLICIES, policy, resolve_policy

__all__ = ["ALIASES", "POLICIES", "policy", "resolve_policy"]
