"""What may be given where a policy or a placement is asked for, as types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from windtunnel.placements.asked import NodeRoom, Request
from windtunnel.sim.contract import Policy
from windtunnel.words import PlacementName, PolicyName

#: A name, with parameters or without; an object or its class; a function of tiers 1 to 3.
AnyPolicy: TypeAlias = PolicyName | str | Policy | type[Policy] | Callable[..., Any]
#: A name, with options or without; a function of a node and a request.
AnyPlacement: TypeAlias = PlacementName | str | Callable[[NodeRoom, Request], float]
