"""A profile of made-up models, so that everything runs without anybody's measurements.

Three transformers of growing size, ``small``, ``medium`` and ``large``. A layer takes
``2 x parameters / rate``; tensor parallelism over p GPUs divides that by p and adds an all-reduce a
layer; a pipeline is cut by `windtunnel.serving.partition.partition_layers` and pays a transfer for
each boundary. A batch of b costs ``0.35 + 0.65 b`` of one request. Round numbers, no measurement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windtunnel.serving.parallel import Parallel
from windtunnel.serving.partition import partition_layers
from windtunnel.serving.profile import Profile, Stages

#: Batch sizes of the profile.
BATCHES = (1, 2, 4, 8, 16)
_DEGREES = (1, 2, 4, 8)
_MOST_GPUS = 8
_BYTES_PER_PARAMETER = 2.0
_FIXED, _BY_REQUEST = 0.35, 0.65
_TRANSFER = 0.0008  # s a pipeline boundary
_ALL_REDUCE = 0.0009  # s a layer and doubling of the tensor degree


class _Model(NamedTuple):
    layers: int
    layer_time: float  # s, one request on one GPU
    layer_parameters: float
    embedding_time: float  # s, before the first and after the last layer
    embedding_parameters: float


_MODELS = {
    "small": _Model(24, 0.006, 50e6, 0.004, 60e6),
    "medium": _Model(32, 0.0072, 80e6, 0.005, 80e6),
    "large": _Model(32, 0.012, 200e6, 0.006, 120e6),
}


def synthetic_profile() -> Profile:
    """Return the made-up profile: tensor and pipeline degrees 1, 2, 4, 8 on up to 8 GPUs."""
    entries = {}
    for name, model in _MODELS.items():
        for op in _DEGREES:
            for pp in _DEGREES:
                if op * pp <= _MOST_GPUS:
                    for batch in BATCHES:
                        entries[name, Parallel(1, op, pp), batch] = _stages(model, op, pp, batch)
    return Profile("synthetic", entries)


def _stages(model: _Model, op: int, pp: int, batch: int) -> Stages:
    scale = _FIXED + _BY_REQUEST * batch
    reduce = _ALL_REDUCE * np.log2(op)
    inner = [model.layer_time / op + reduce] * model.layers
    costs = np.array([model.embedding_time / op, *inner, model.embedding_time / op]) * scale
    sizes = np.array(
        [model.embedding_parameters, *[model.layer_parameters] * model.layers,
         model.embedding_parameters]
    )  # fmt: skip
    starts = np.array(partition_layers(costs.tolist(), pp).bounds[:-1])
    latency = np.add.reduceat(costs, starts)
    latency[:-1] += _TRANSFER * scale
    weights = np.add.reduceat(sizes, starts) * _BYTES_PER_PARAMETER / op
    return Stages(latency, weights, np.full(pp, 0.25 * 2**30 * batch / op))
