"""Slurm's scheduler as a policy: its two loops, by a site's own files."""

from windtunnel.policies.slurm.policy import Slurm

__all__ = ["Slurm"]
