"""Every option of a training model on a cluster of equal nodes."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from windtunnel.throughput.options import Option, shapes_of
from windtunnel.throughput.plans import WORDS, Plan
from windtunnel.throughput.prediction import three_d_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from windtunnel.throughput.facts import TrainingFacts
    from windtunnel.throughput.options import Shape

    Lookup: TypeAlias = Callable[[Plan, Shape, int | None], tuple[float, bool] | str]

#: CPUs with each GPU at which an optimizer on CPUs is offered, beside the measured ones.
THREADS = (1, 2, 4, 8)

#: Up to so many GPUs every shape is an option: 231 of 16; 18,000 of 40 would drown all else.
EVERY_SHAPE = 16


@lru_cache(maxsize=256)
def options_of(
    model: TrainingFacts, lookup: Lookup, node_gpus: int, node_cpus: int, num_nodes: int
) -> tuple[Option, ...]:
    """Return a model's options in their order; models are distinguished by identity.

    Args:
        model: the model.
        lookup: its seconds an iteration of a plan on a shape with CPUs, and whether they were
            measured so; or why there are none.
        node_gpus: GPUs of a node.
        node_cpus: CPUs of a node.
        num_nodes: nodes.
    """
    found: list[Option] = []
    for plan, shape in _candidates(model, node_gpus, num_nodes):
        for cpus in _cpu_choices(model, plan, shape):
            if cpus * shape[0] <= node_cpus:
                time = lookup(plan, shape, cpus)
                if not isinstance(time, str):
                    gpus = sum(shape)
                    found.append(Option(plan, shape, cpus * gpus, *time, model.gpu_type))
    return tuple(sorted(found, key=Option.order))


def _candidates(
    model: TrainingFacts, node_gpus: int, num_nodes: int
) -> Iterator[tuple[Plan, Shape]]:
    """Yield each plan with each shape that it might run on, once.

    Those are the measured and the permitted ones, every shape of a plan without degrees between the
    sizes that it was measured at, and, where no limits are known, 3D plans of measured degrees.
    """
    tried = dict.fromkeys(model.table.keys)
    tried.update(dict.fromkeys((p, s) for p, many in model.placements.items() for s in many))
    for plan in map(Plan.parse, WORDS):
        sizes = model.sizes_of(plan)
        for gpus in range(min(sizes, default=1), max(sizes, default=0) + 1):
            if model.global_batch_size % plan.degrees(gpus)[2] == 0:
                every = shapes_tried(gpus, node_gpus, num_nodes)
                tried.update(dict.fromkeys((plan, shape) for shape in every))
    if model.three_d is not None and not model.limits:
        tried.update(dict.fromkeys(_three_d_candidates(model)))
    for plan, shape in tried:
        if shape[0] <= node_gpus and len(shape) <= num_nodes:
            yield plan, shape


def _three_d_candidates(model: TrainingFacts) -> Iterator[tuple[Plan, Shape]]:
    """Yield each combination of measured degrees on each measured number of GPUs a node."""
    rows = three_d_rows(model)
    degrees = [plan.degrees(sum(shape)) for plan, shape, _ in rows]
    pipelines, tensors, replicas = (sorted(set(each)) for each in zip(*degrees, strict=True))
    pieces = sorted({shape[0] for _, shape, _ in rows})
    for pipeline, tensor, data, piece in product(pipelines, tensors, replicas, pieces):
        nodes, rest = divmod(pipeline * tensor * data, piece)
        if rest == 0:
            yield Plan("3d", pipeline, tensor, data), (piece,) * nodes


def shapes_tried(gpus: int, node_gpus: int, num_nodes: int) -> Iterator[Shape]:
    """Yield the shapes of so many GPUs; of many GPUs those in equal pieces."""
    if gpus <= EVERY_SHAPE:
        yield from shapes_of(gpus, node_gpus=node_gpus, num_nodes=num_nodes)
        return
    for nodes in range(-(-gpus // node_gpus), min(gpus, num_nodes) + 1):
        if gpus % nodes == 0:
            yield (gpus // nodes,) * nodes


def _cpu_choices(model: TrainingFacts, plan: Plan, shape: Shape) -> tuple[int, ...]:
    """Return the CPUs with each GPU that a plan is offered with."""
    if plan.family != "zero-offload":
        return (plan.cpus_per_gpu,)
    measured = {model.threads_of(row) for row in model.table.at(plan, shape)}
    known = {threads for threads in measured if threads is not None}
    if model.fitted is not None and (known or model.offload_threads is not None):
        known |= set(THREADS)
    return tuple(sorted(known)) or (plan.cpus_per_gpu,)
