"""What jobs need to go on once they were stopped, where their source has numbers for it.

A jobs table has them in its further column ``restore_time``: seconds on the job's GPUs, saving and
restoring together. A flight goes by them unless the scheduler says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Helios' simulator (Hu et al., SC'21): least GPUs -> s; a node has eight.
HELIOS: Mapping[float, float] = {1: 7.0, 2: 30.0, 9: 60.0}
#: What a file of published facts may say of restoring -> least GPUs -> s.
BY_GPUS: Mapping[str, Mapping[float, float]] = {"helios": HELIOS}
#: Morphling's (Yuan et al., MLSys'25): s of a launch, whatever the model.
MORPHLING = 260.0
#: Shockwave's (Zheng et al., NSDI'23): s of a round in which a job goes on.
SHOCKWAVE = 20.0


def by_gpus(num_gpus: pa.Array | pa.ChunkedArray, seconds: Mapping[float, float]) -> pa.Array:
    """Return what each job needs by its GPUs, s, null where they are unknown.

    Args:
        num_gpus: of the whole gang.
        seconds: least GPUs -> s; smaller jobs need nothing.

    >>> by_gpus(pa.array([0.5, 8.0, None]), HELIOS).to_pylist()
    [0.0, 30.0, None]
    """
    gpus = np.asarray(num_gpus.to_numpy(zero_copy_only=False), dtype=np.float64)
    costs = np.array([0.0, *(seconds[least] for least in sorted(seconds))])
    found = costs[np.searchsorted(sorted(seconds), gpus, side="right")]
    return pa.array(found, pa.float64(), mask=np.isnan(gpus))
