"""A worker's call that kills the worker; in a module of its own, which workers import."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from windtunnel.study.grid.flying import fly_order

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.study.grid.flying import Order


def fly_or_die(order: Order) -> tuple[pa.Table, float]:
    """Fly a run; but the worker dies once of each run of seed 1, and always of seed 2."""
    mark = Path(order.run.options["slowdown"]) / order.run.run_id
    if order.run.seed == 2 or (order.run.seed == 1 and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return fly_order(order)
