"""How a replica forms its batches: an engine's settings, its power, and pools that lie apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from windtunnel.checked import checked_choice, checked_count, checked_number
from windtunnel.errors import SpecError, quote
from windtunnel.serving.llm_numbers import MOST, flag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.serving.llm_costs import Cost

#: Schedulers, in the order of the kernel's codes.
SCHEDULERS = ("orca", "vllm_v0", "sarathi", "vllm_v1")
#: Rules that send a request to a replica, in the order of the kernel's codes.
LLM_DISPATCH = (
    *("least_loaded", "round_robin", "least_waiting", "least_tokens"),
    "prefix_affinity",
)
#: Tokens of a block that a request trace gives an id to.
UNIT_TOKENS = 512
_COUNTS = ("token_budget", "max_num_seqs", "block_size", "num_blocks", "stages")


@dataclass(frozen=True)
class Engine:
    """The settings of an engine's scheduler and of its paged memory.

    Attributes:
        scheduler: ``vllm_v1`` (vLLM 0.19), ``sarathi`` (chunked prefill), ``vllm_v0`` (prefill
            first) or ``orca``.
        num_blocks: blocks of KV memory that a replica may use.
        token_budget: tokens of an iteration.
        max_num_seqs: requests that a replica runs.
        block_size: tokens of a block.
        prefix_caching: blocks are found again by what they hold; ``vllm_v1`` alone.
        reserve_prompt: ``vllm_v1`` admits a request only if all of its tokens so far fit.
        watermark: part of the blocks that admission leaves free; ``sarathi`` and ``vllm_v0``.
        reserve_tokens: that ``orca`` reserves for each; without it prompt + output, exactly.
        stages: of the pipeline; ``vllm_v1`` has one.
        affinity_slack: requests more than the least loaded replica has that one may have to be
            chosen by `prefix_affinity`.

    Raises:
        SpecError: a value is wrong, or does not go with the scheduler.
    """

    scheduler: str = "vllm_v1"
    num_blocks: int = 0
    token_budget: int = 2048
    max_num_seqs: int = 256
    block_size: int = 16
    prefix_caching: bool = False
    reserve_prompt: bool = True
    watermark: float = 0.0
    reserve_tokens: int | None = None
    stages: int = 1
    affinity_slack: int = 8

    def __post_init__(self) -> None:
        checked_choice("scheduler", self.scheduler, SCHEDULERS)
        for name in _COUNTS:
            checked_count(name, getattr(self, name), most=MOST)
        for name in ("prefix_caching", "reserve_prompt"):
            flag(name, getattr(self, name))
        checked_number("watermark", self.watermark, "0 to 1", least=0, most=1)
        if self.reserve_tokens is not None:
            checked_count("reserve_tokens", self.reserve_tokens, most=MOST)
        checked_count("affinity_slack", self.affinity_slack, least=0, most=MOST)
        if self.scheduler != "vllm_v1" and self.prefix_caching:
            raise SpecError(
                "prefix_caching", f"expected scheduler vllm_v1, not {self.scheduler}, with it."
            )
        if self.scheduler == "vllm_v1" and self.stages > 1:
            raise SpecError("stages", f"found {self.stages}; vllm_v1 has one.")
        if self.scheduler != "orca" and self.max_num_seqs < self.stages:
            found = f"found {self.max_num_seqs}; expected one a stage at least, {self.stages}."
            raise SpecError("max_num_seqs", found)

    def data(self) -> dict[str, Any]:
        """Return the keys of a file, without those that have no value."""
        return {name: value for name, value in asdict(self).items() if value is not None}


ENGINE_KEYS = tuple(one.name for one in fields(Engine))


@dataclass(frozen=True)
class Power:
    """What a GPU draws: in iterations with a prefill, in others, and between them, W."""

    idle_w: float
    prefill_w: float
    decode_w: float

    def __post_init__(self) -> None:
        for name in ("idle_w", "prefill_w", "decode_w"):
            checked_number(name, getattr(self, name), least=0)


@dataclass(frozen=True)
class Split:
    """Prefill and decode on replicas of their own, with a link from each that prefills.

    Attributes:
        prefill_replicas, decode_replicas: how many.
        kv_bytes_per_token: that a link carries.
        bandwidth: of a link, bytes/s.
        latency_s: of a transfer.
        decode_dispatch: which replica decodes, a rule of `LLM_DISPATCH`.
        prefill, decode: keys of the engine that differ there.
        prefill_cost, decode_cost: costs that differ there.
    """

    prefill_replicas: int
    decode_replicas: int
    kv_bytes_per_token: float
    bandwidth: float
    latency_s: float = 0.0
    decode_dispatch: str = "least_loaded"
    prefill: Mapping[str, Any] | None = None
    decode: Mapping[str, Any] | None = None
    prefill_cost: Cost | None = None
    decode_cost: Cost | None = None

    def __post_init__(self) -> None:
        for name in ("prefill_replicas", "decode_replicas"):
            checked_count(name, getattr(self, name), most=MOST)
        checked_number("kv_bytes_per_token", self.kv_bytes_per_token, least=0)
        if self.bandwidth != float("inf"):
            checked_number("bandwidth", self.bandwidth, above=0)
        checked_number("latency_s", self.latency_s, least=0)
        checked_choice("decode_dispatch", self.decode_dispatch, LLM_DISPATCH)

    def engines(self, engine: Engine) -> tuple[Engine, Engine]:
        """Return the engines of both pools.

        Raises:
            SpecError: one is not vLLM's, or a value is wrong.
        """
        pools = replace(engine, **(self.prefill or {})), replace(engine, **(self.decode or {}))
        for pool in pools:
            if pool.scheduler != "vllm_v1":
                found = quote(pool.scheduler)
                raise SpecError("split", f"expected scheduler vllm_v1 with it, found {found}.")
        return pools
