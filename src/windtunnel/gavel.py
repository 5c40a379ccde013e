"""Heterogeneity-aware allocation: ``from windtunnel import gavel; gavel.allocate(...)``.

Every policy of Gavel (Narayanan et al., OSDI'20) as a pure function of an allocation instance.
"""

from windtunnel.policies.gavel.allocation import Allocation
from windtunnel.policies.gavel.catalogue import POLICIES, allocate
from windtunnel.policies.gavel.instance import Entity, Instance, as_instance
from windtunnel.policies.gavel.measured_instances import instance_of

__all__ = ["POLICIES", "Allocation", "Entity", "Instance", "allocate", "as_instance", "instance_of"]


def __dir__() -> list[str]:
    return __all__
