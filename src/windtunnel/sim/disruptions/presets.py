"""Published failure rates as presets: facts with their sources.

Rates are of nodes of 8 GPUs. How long a repair takes none of the sources says: `MTTR` is ours.

References:
    A. Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
    HPCA 2025: 6.50 failures per 1,000 node-days (RSC-1).
    A. Dubey et al., "The Llama 3 Herd of Models", 2024, table 5: 466 interruptions of a job of
    16,384 GPUs in 54 days, 47 planned and 419 not, by cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.sim.disruptions.failures import FailureModel, JobFailures
from windtunnel.sim.disruptions.spec import Disruptions

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = 86_400.0
#: Mean time to repair a node where nobody says another, s.
MTTR = 4 * 3_600.0
#: RSC-1's failures of a node of 8 GPUs a day.
RSC_RATE = 6.50 / 1_000
#: Llama 3's job: GPUs, nodes, days.
LLAMA_GPUS, LLAMA_NODES, LLAMA_DAYS = 16_384, 2_048, 54
#: Its unexpected interruptions by cause that took a node.
LLAMA_NODE_CAUSES: dict[str, float] = {
    "faulty GPU": 148,
    "GPU HBM3 memory": 72,
    "network switch or cable": 35,
    "host maintenance": 32,
    "GPU SRAM memory": 19,
    "GPU system processor": 17,
    "network interface": 7,
    "silent data corruption": 6,
    "GPU thermal interface or sensor": 6,
    "SSD": 3,
    "power supply": 3,
    "server chassis": 2,
    "IO expansion board": 2,
    "CPU": 2,
    "system memory": 2,
}
#: Those that left the nodes up: software bugs, NCCL watchdog timeouts, dependencies.
LLAMA_JOB_FAILURES = 54 + 7 + 2


def _rsc(mttr: float | str) -> Disruptions:
    model = FailureModel(mtbf=DAY / RSC_RATE, mttr=mttr)
    return Disruptions(failure_models=(model,))


def _llama3(mttr: float | str) -> Disruptions:
    total = sum(LLAMA_NODE_CAUSES.values())
    model = FailureModel(
        mtbf=LLAMA_NODES * LLAMA_DAYS * DAY / total, mttr=mttr, causes=LLAMA_NODE_CAUSES
    )
    rate = LLAMA_JOB_FAILURES / (LLAMA_GPUS * LLAMA_DAYS * 24)
    return Disruptions(failure_models=(model,), job_failures=JobFailures(rate=rate))


#: Name -> the description, with a mean time to repair (s, or a span in words).
PRESETS: dict[str, Callable[[float | str], Disruptions]] = {"rsc": _rsc, "llama3": _llama3}
