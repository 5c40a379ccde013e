"""What an iteration of a language model costs: straight lines, measured curves, or a roofline."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from windtunnel.checked import checked_count, checked_number
from windtunnel.errors import SpecError, quote
from windtunnel.serving.compiled import kernels
from windtunnel.serving.llm_numbers import MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Codes of the kernel.
_CODES = {"linear": 0, "piecewise": 1, "roofline": 2, "layers": 3}
#: A curve or a grid has as many knots at least.
_FEWEST = 2


class Cost:
    """The time of an iteration; its forms are dataclasses whose fields are a file's keys.

    Attributes:
        form: linear, piecewise, roofline or layers.
        tensor_parallel: GPUs that share each layer.
    """

    form: ClassVar[str]
    tensor_parallel: int = 1

    @cached_property
    def kernel(self) -> Any:
        """The same as the kernels see it."""
        return kernels().IterationCost(_CODES[self.form], self._tables())

    def _tables(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def seconds(  # noqa: PLR0917 - by place or by name
        self,
        prefill_tokens: float,
        decode_seqs: float,
        kv_tokens: float,
        prefill_pairs: float = 0,
        prefill_context: float = 0,
        sequences: float | None = None,
    ) -> float:
        """Return the time of an iteration, s.

        Args:
            prefill_tokens: of prompts, in this iteration.
            decode_seqs: sequences that get their next token.
            kv_tokens: tokens that those attend to, the ones fed included.
            prefill_pairs: of a prompt's token and one that it attends to.
            prefill_context: tokens of those prompts that came earlier.
            sequences: in the batch; by default the decoding ones and one that prefills, if any.
        """
        if sequences is None:
            sequences = decode_seqs + (prefill_tokens > 0)
        return float(
            self.kernel.seconds(
                *(prefill_tokens, decode_seqs, kv_tokens),
                *(prefill_pairs, prefill_context, sequences),
            )
        )

    def at_degree(self, tensor_parallel: int) -> Cost:
        """Return the cost at another degree of tensor parallelism.

        Raises:
            SpecError: it was measured at its own alone.
        """
        if tensor_parallel == self.tensor_parallel:
            return self
        raise SpecError(
            "tensor_parallel",
            f"form {self.form} is measured at {self.tensor_parallel}, not {tensor_parallel}; "
            "expected form roofline, or a model of its own for each.",
        )

    def data(self) -> dict[str, Any]:
        """Return the keys of a file, without those that are as by default."""
        kept = {"form": self.form} if self.form != "linear" else {}
        for one in fields(self):  # type: ignore[arg-type] # every form is a dataclass
            value = getattr(self, one.name)
            if value != one.default:
                kept[one.name] = _plain(value)
        return kept


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class LinearCost(Cost):
    """a + b prefill tokens + c decoding sequences + d KV tokens + q prefill pairs.

    Attributes:
        iteration_s: a, s; 0 only where tokens of prompts and decodes take time.
        prefill_token_s: b, s a prompt token processed.
        decode_seq_s: c, s a sequence that gets its next token.
        kv_token_s: d, s a token that those sequences attend to.
        prefill_attention_s: q, s a pair of a prompt's token and one that it attends to.
    """

    form: ClassVar[str] = "linear"
    iteration_s: float
    prefill_token_s: float
    decode_seq_s: float
    kv_token_s: float
    prefill_attention_s: float = 0.0
    tensor_parallel: int = 1

    def __post_init__(self) -> None:
        for name, value in zip(LINEAR, self.costs, strict=True):
            checked_number(name, value, least=0)
        prefill = self.prefill_token_s + self.prefill_attention_s
        _check_free(self, prefills=prefill > 0)
        checked_count("tensor_parallel", self.tensor_parallel, most=MOST)

    @property
    def costs(self) -> tuple[Any, ...]:
        """The numbers a, b, c, d, q."""
        return tuple(getattr(self, name) for name in LINEAR)

    def _tables(self) -> dict[str, np.ndarray]:
        return {"numbers": np.array(self.costs, dtype=np.float64)}


def _check_free(cost: LinearCost | PiecewiseCost, *, prefills: bool = True) -> None:
    """Check that no iteration takes no time.

    Raises:
        SpecError: one that prefills, unless those take time by what they hold, or one that decodes.
    """
    decodes = cost.decode_seq_s + cost.kv_token_s > 0
    if cost.iteration_s == 0 and not (prefills and decodes):
        expected = "a finite number > 0, as an iteration would take no time"
        raise SpecError("iteration_s", f"found {quote(cost.iteration_s)}; expected {expected}.")


#: The keys of linear costs, in the order in which they are added.
LINEAR = (
    *("iteration_s", "prefill_token_s", "decode_seq_s", "kv_token_s"),
    "prefill_attention_s",
)


@dataclass(frozen=True)
class PiecewiseCost(Cost):
    """A measured curve of prefills, and a line or a measured grid of decodes.

    Attributes:
        prefill_knots: (tokens, s), ascending tokens.
        iteration_s, decode_seq_s, kv_token_s: the line of decodes.
        prefill_context_s: s a token of a prompt that came in earlier iterations.
        decode_contexts, decode_batches: knots of the grid, ascending; () for the line.
        decode_s: s, by context, then batch.
    """

    form: ClassVar[str] = "piecewise"
    prefill_knots: tuple[tuple[float, float], ...]
    iteration_s: float
    decode_seq_s: float = 0.0
    kv_token_s: float = 0.0
    prefill_context_s: float = 0.0
    decode_contexts: tuple[float, ...] = ()
    decode_batches: tuple[float, ...] = ()
    decode_s: tuple[tuple[float, ...], ...] = ()
    tensor_parallel: int = 1

    def __post_init__(self) -> None:
        checked_count("tensor_parallel", self.tensor_parallel, most=MOST)
        for name in ("iteration_s", "decode_seq_s", "kv_token_s", "prefill_context_s"):
            checked_number(name, getattr(self, name), least=0)
        if not self.decode_s:
            _check_free(self)
        for one in self.prefill_knots:
            if not isinstance(one, tuple | list) or len(one) != _FEWEST:
                raise SpecError("prefill_knots", f"found {quote(one)}; expected pairs [tokens, s].")
        ascending("prefill_knots", [one[0] for one in self.prefill_knots])
        for _, time in self.prefill_knots:
            checked_number("prefill_knots", time, above=0)
        if self.decode_contexts or self.decode_batches or self.decode_s:
            self._check_grid()

    def _check_grid(self) -> None:
        ascending("decode_contexts", self.decode_contexts)
        ascending("decode_batches", self.decode_batches)
        rows, columns = len(self.decode_contexts), len(self.decode_batches)
        if len(self.decode_s) != rows or any(len(row) != columns for row in self.decode_s):
            shape = [len(row) for row in self.decode_s]
            raise SpecError(
                "decode_s",
                f"found rows of {quote(shape)}; expected {rows} (decode_contexts) of {columns} "
                "(decode_batches) numbers.",
            )
        for time in (one for row in self.decode_s for one in row):
            checked_number("decode_s", time, above=0)

    def _tables(self) -> dict[str, np.ndarray]:
        line = (self.iteration_s, self.decode_seq_s, self.kv_token_s, self.prefill_context_s)
        knots = np.array(self.prefill_knots, dtype=np.float64)
        return {
            "numbers": np.array(line, dtype=np.float64),
            "knots": knots[:, 0].copy(),
            "times": knots[:, 1].copy(),
            "contexts": np.array(self.decode_contexts, dtype=np.float64),
            "batches": np.array(self.decode_batches, dtype=np.float64),
            "grid": np.array(self.decode_s or ((),), dtype=np.float64),
        }


def ascending(where: str, knots: Sequence[Any]) -> None:
    """Check knots.

    Raises:
        SpecError: they are fewer than two, no numbers >= 0, or not ascending.
    """
    checked_number(where, len(knots), f"at least {_FEWEST} knots", least=_FEWEST)
    for before, knot in zip((None, *knots), (*knots, None), strict=True):
        if knot is None:
            break
        checked_number(where, knot, least=0)
        if before is not None and not before < knot:
            raise SpecError(where, f"found {quote(knot)} behind {quote(before)}; expected more.")


@dataclass(frozen=True)
class RooflineCost(Cost):
    """The longer of computing and reading, by published figures of a GPU.

    Attributes:
        parameters: of the model.
        layers, hidden: its layers, and their width.
        weight_bytes: that an iteration reads.
        kv_bytes_per_token: of all layers.
        flops, bandwidth: of a GPU, operations/s and bytes/s.
        flops_efficiency, bandwidth_efficiency: the part of them that is reached.
        tensor_parallel: GPUs.
        activation_bytes: of a number that is sent.
        link_bandwidth, link_latency_s: between GPUs, bytes/s and s; needed with several.
        overhead_s: of an iteration.
    """

    form: ClassVar[str] = "roofline"
    parameters: float
    layers: int
    hidden: int
    weight_bytes: float
    kv_bytes_per_token: float
    flops: float
    bandwidth: float
    flops_efficiency: float = 1.0
    bandwidth_efficiency: float = 1.0
    tensor_parallel: int = 1
    activation_bytes: float = 2.0
    link_bandwidth: float = 0.0
    link_latency_s: float = 0.0
    overhead_s: float = 0.0

    def __post_init__(self) -> None:
        rates = ("flops", "bandwidth", "flops_efficiency", "bandwidth_efficiency")
        for name in ("parameters", "weight_bytes", *rates):
            checked_number(name, getattr(self, name), above=0)
        for name in ("kv_bytes_per_token", "overhead_s"):
            checked_number(name, getattr(self, name), least=0)
        check_links(self)

    def at_degree(self, tensor_parallel: int) -> Cost:
        """Return the cost at another degree of tensor parallelism."""
        return replace(self, tensor_parallel=tensor_parallel)

    def _tables(self) -> dict[str, np.ndarray]:
        tp = self.tensor_parallel
        numbers = (
            tp * self.flops * self.flops_efficiency,
            tp * self.bandwidth * self.bandwidth_efficiency,
            2 * self.parameters,
            4 * self.layers * self.hidden,
            self.weight_bytes,
            self.kv_bytes_per_token,
        )
        return {"numbers": np.array(numbers, dtype=np.float64), "reduces": all_reduces(self)}


def check_links(cost: Any) -> None:
    """Check what roofline and kernel tables share.

    Raises:
        SpecError: a value is wrong, or GPUs share layers over no link.
    """
    for name in ("layers", "hidden", "tensor_parallel"):
        checked_count(name, getattr(cost, name), most=MOST)
    for name in ("activation_bytes", "link_bandwidth", "link_latency_s", "overhead_s"):
        checked_number(name, getattr(cost, name), least=0)
    if cost.tensor_parallel > 1 and cost.link_bandwidth == 0:
        raise SpecError("link_bandwidth", "is missing; tensor_parallel > 1 needs it, in bytes/s.")


def all_reduces(cost: Any) -> np.ndarray:
    """Return seconds a token, and seconds an iteration, of all-reduces and overhead: shape (2,)."""
    tp = cost.tensor_parallel
    if tp == 1:
        return np.array([0.0, cost.overhead_s])
    each = 2 * (tp - 1) / tp * cost.hidden * cost.activation_bytes / cost.link_bandwidth
    wait = 2 * (tp - 1) * cost.link_latency_s
    return np.array([2 * cost.layers * each, 2 * cost.layers * wait + cost.overhead_s])
