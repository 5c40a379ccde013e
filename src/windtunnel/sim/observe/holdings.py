"""What each stay of a run holds on each node: GPUs, devices where they are modelled, and cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.devices import CORE_UNITS, MILLI
from windtunnel.sim.device_requests import rounded_down
from windtunnel.sim.timeline import held_over_time

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown


@dataclass(frozen=True)
class Holdings:
    """One entry a stay and node.

    Attributes:
        stay: Int array (e,), the stay: its row in the segments.
        node: Int array (e,), node index.
        milli: Int array (e,), thousandths of GPUs held there.
        cores: Int array (e,), thousandths of cores held there; unknown requests hold none.
        devices: Int64 array (e,), the node's devices that are held, one bit each; None where
            devices are not modelled, and whole GPUs are only counted.
    """

    stay: np.ndarray
    node: np.ndarray
    milli: np.ndarray
    cores: np.ndarray
    devices: np.ndarray | None = None


def has_nodes(outcome: Flown) -> bool:
    """Return whether it is known which nodes the run's jobs were on (on a pool there are none)."""
    flight = outcome.flight
    if outcome.cluster.is_pool or outcome.settings.get("placement") == "pool":
        return False
    return len(flight.nodes) > 0 or not (outcome.num_gpus[flight.segment_job] > 0).any()


def can_fragment(outcome: Flown) -> bool:
    """Return whether the GPUs of nodes were distinguished, so that free ones can be fragments."""
    return has_nodes(outcome) and outcome.settings.get("sharing") != "pooled"


def models_devices(outcome: Flown) -> bool:
    """Return whether the run modelled the nodes' devices, or pools of them."""
    return outcome.settings.get("sharing") is not None


def bound_by_cores(outcome: Flown) -> bool:
    """Return whether the cores of nodes limited what ran on them."""
    return models_devices(outcome) and outcome.settings.get("resources") != "gpus"


def holdings(outcome: Flown) -> Holdings:
    """Return what each stay held on each node.

    A job's cores are divided evenly among its tasks; where it is not known how many of them ran on
    a node, among its GPUs.
    """
    flight = outcome.flight
    stay = np.repeat(np.arange(len(flight.segment_job)), np.diff(flight.node_offset))
    row = flight.segment_job[stay]
    asked = np.nan_to_num(outcome.jobs["num_cpus"].to_numpy().astype(np.float64))[row]
    if len(flight.node_tasks):
        tasks = np.bincount(stay, flight.node_tasks)[stay]
        cores = rounded_down(asked / tasks * CORE_UNITS) * flight.node_tasks
    elif flight.stretches is not None:
        found = flight.stretches
        cores = np.round((found.cpus / found.gpus)[stay] * flight.node_gpus * CORE_UNITS)
    else:
        gpus = outcome.num_gpus[row]
        each = np.divide(asked, gpus, out=np.zeros(len(row)), where=gpus > 0)
        cores = np.round(each * flight.node_gpus * CORE_UNITS)
    return Holdings(
        stay,
        flight.nodes.astype(np.int64),
        np.round(flight.node_gpus * float(MILLI)).astype(np.int64),
        cores.astype(np.int64),
        flight.devices.astype(np.int64) if len(flight.devices) else None,
    )


def holdings_over_time(outcome: Flown) -> tuple[Holdings, np.ndarray, np.ndarray]:
    """Return what is held on each node, and from when to when (s), where jobs share places, too.

    Each of them holds an equal part of the place while they are there together. The ``stay`` of an
    entry is a place in the times then; without such jobs it is the stay.
    """
    held, flight = holdings(outcome), outcome.flight
    if flight.portions is None:
        return held, flight.segment_start, flight.segment_end
    entry, start, end, part = held_over_time(outcome, held.stay, np.ones(len(held.stay)))
    parts = Holdings(
        np.arange(len(entry)),
        held.node[entry],
        (held.milli[entry] * part).astype(np.int64),
        (held.cores[entry] * part).astype(np.int64),
        None if held.devices is None else held.devices[entry],
    )
    return parts, start, end
