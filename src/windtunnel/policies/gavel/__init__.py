"""Gavel's allocation policies: pure functions from an instance to time shares."""

from windtunnel.policies.gavel.allocation import Allocation
from windtunnel.policies.gavel.catalogue import POLICIES, allocate
from windtunnel.policies.gavel.instance import Entity, Instance, as_instance
from windtunnel.policies.gavel.measured_instances import instance_of

__all__ = ["POLICIES", "Allocation", "Entity", "Instance", "allocate", "as_instance", "instance_of"]
