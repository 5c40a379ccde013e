"""A replica of a language model: what its iterations cost, its engine and its power."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windtunnel.checked import checked_count
from windtunnel.errors import SpecError
from windtunnel.serving.llm_costs import LINEAR, Cost, LinearCost
from windtunnel.serving.llm_engine import Engine
from windtunnel.serving.llm_numbers import MOST

if TYPE_CHECKING:
    from windtunnel.serving.llm_engine import Power, Split

#: Stands for costs that are given as four numbers.
_GIVEN_ABOVE = Cost()


class Pool(NamedTuple):
    """Replicas that do the same.

    Attributes:
        engine, cost: of each.
        replicas: how many.
        gpus: of each.
    """

    engine: Engine
    cost: Cost
    replicas: int
    gpus: int


@dataclass(frozen=True)
class LlmModel:
    """A replica; the attributes are the keys of a model's file.

    Attributes:
        iteration_s, prefill_token_s, decode_seq_s, kv_token_s: linear costs, in place of ``cost``.
        kv_limit: tokens that the KV memory holds; needed without ``engine``.
        max_batch: most sequences in an iteration, without ``engine``.
        gpus: of a replica; by default tensor parallelism x pipeline stages.
        cost: the time of an iteration.
        engine: its scheduler and paged memory; without it requests reserve prompt + output tokens
            of ``kv_limit``, as in Orca (Yu et al., OSDI'22).
        power: of a GPU.
        split: prefill and decode on replicas of their own.

    Raises:
        SpecError: a number is wrong, or something is missing.
    """

    iteration_s: float | None = None
    prefill_token_s: float | None = None
    decode_seq_s: float | None = None
    kv_token_s: float | None = None
    kv_limit: int | None = None
    max_batch: int = 256
    gpus: int | None = None
    cost: Cost = _GIVEN_ABOVE
    engine: Engine | None = None
    power: Power | None = None
    split: Split | None = None

    def __post_init__(self) -> None:
        if self.cost is _GIVEN_ABOVE:
            found = [getattr(self, name) for name in LINEAR[:4]]
            for name, value in zip(LINEAR, found, strict=False):
                if value is None:
                    raise SpecError(name, "is missing.")
            object.__setattr__(self, "cost", LinearCost(*found))
        if self.gpus is None:
            stages = self.engine.stages if self.engine else 1
            object.__setattr__(self, "gpus", self.cost.tensor_parallel * stages)
        checked_count("gpus", self.gpus, most=MOST)
        checked_count("max_batch", self.max_batch, most=MOST)
        if self.kv_limit is not None:
            checked_count("kv_limit", self.kv_limit, most=MOST)
        elif self.engine is None:
            raise SpecError("kv_limit", "is missing; without an [engine] it is needed.")
        if self.split is not None:
            self.split.engines(self.pages)

    @property
    def pages(self) -> Engine:
        """The engine; where there is none, one whose blocks are single tokens."""
        if self.engine is not None:
            return self.engine
        return Engine(
            scheduler="orca",
            num_blocks=self.kv_limit or 0,
            max_num_seqs=self.max_batch,
            block_size=1,
        )

    @property
    def gpus_together(self) -> int:
        """GPUs of a replica; of both pools where they lie apart."""
        return sum(pool.replicas * pool.gpus for pool in self.pools())

    def pools(self, replicas: int = 1) -> list[Pool]:
        """Return the pools of so many replicas: one, or those that prefill and those that decode.

        Of a model whose pools lie apart, ``replicas`` is how often it is there.
        """
        split, gpus = self.split, self.gpus or 1
        if split is None:
            return [Pool(self.pages, self.cost, replicas, gpus)]
        counts = split.prefill_replicas, split.decode_replicas
        costs = split.prefill_cost, split.decode_cost
        return [
            Pool(
                engine,
                own or self.cost,
                count * replicas,
                gpus if own is None else own.tensor_parallel * engine.stages,
            )
            for engine, own, count in zip(split.engines(self.pages), costs, counts, strict=True)
        ]

    @property
    def reserves_exactly(self) -> bool:
        """Whether requests reserve prompt + output tokens, not blocks."""
        return self.pages.scheduler == "orca" and self.pages.reserve_tokens is None

    @property
    def costs(self) -> np.ndarray:
        """The numbers of linear costs, shape (5,) or, as four are given, (4,), s.

        Raises:
            SpecError: the costs are of another form.
        """
        if not isinstance(self.cost, LinearCost):
            raise SpecError("cost", f"found form {self.cost.form}; expected linear.")
        known = self.cost.costs[: 4 if self.iteration_s is not None else 5]
        return np.array(known, dtype=np.float64)

    def but(self, **engine: Any) -> LlmModel:
        """Return the model with other keys of its engine.

        A model without one gets one, with ``kv_limit`` in blocks and ``max_batch``.

        Raises:
            SpecError: a value is wrong.
        """
        if not engine:
            return self
        if self.engine is not None:
            return replace(self, engine=replace(self.engine, **engine))
        size = engine.get("block_size", 16)
        blocks = (self.kv_limit or 0) // max(size, 1)
        of_own = {"max_num_seqs": self.max_batch, "num_blocks": blocks}
        return replace(self, engine=Engine(**{**of_own, **engine}))

    def at_degree(self, tensor_parallel: int) -> LlmModel:
        """Return the model on so many GPUs a stage.

        Raises:
            SpecError: its costs were measured at another degree.
        """
        cost = self.cost.at_degree(tensor_parallel)
        if cost is self.cost:
            return self
        gpus = tensor_parallel * self.pages.stages
        return replace(self.with_cost(cost), gpus=gpus)

    def with_cost(self, cost: Cost) -> LlmModel:
        """Return the model with another cost."""
        none: Any = dict.fromkeys(LINEAR[:4])
        return replace(self, cost=cost, **none)

    def data(self) -> dict[str, Any]:
        """Return the keys of a file."""
        keys: dict[str, Any] = {}
        if self.iteration_s is None:
            keys["cost"] = self.cost.data()
        else:
            keys |= {name: getattr(self, name) for name in LINEAR[:4]}
        if self.kv_limit is not None:
            keys["kv_limit"] = self.kv_limit
        if self.engine is None:
            keys["max_batch"] = self.max_batch
        keys["gpus"] = self.gpus
        if self.engine is not None:
            keys["engine"] = self.engine.data()
        if self.power is not None:
            keys["power"] = asdict(self.power)
        if self.split is not None:
            keys["split"] = _split_data(self.split)
        return keys


def _split_data(split: Split) -> dict[str, Any]:
    plain = ("prefill_replicas", "decode_replicas", "kv_bytes_per_token", "bandwidth", "latency_s")
    facts = {name: getattr(split, name) for name in (*plain, "decode_dispatch")}
    for pool in ("prefill", "decode"):
        keys = dict(getattr(split, pool) or {})
        cost = getattr(split, f"{pool}_cost")
        if cost is not None:
            keys["cost"] = cost.data()
        if keys:
            facts[pool] = keys
    return facts


def synthetic_llm() -> LlmModel:
    """Return a made-up model: round numbers that belong to no GPU."""
    return LlmModel(0.008, 4e-5, 2e-5, 4e-8, kv_limit=400_000)
