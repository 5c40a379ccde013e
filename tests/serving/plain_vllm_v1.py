"""One replica under vLLM's scheduler, written plainly: block by block and token by token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel import serving

UNIT = 512


@dataclass
class _Request:
    row: int
    prompt: int
    output: int
    ids: tuple[int, ...]
    made: int = 0
    done: int = 0
    table: list[int] = field(default_factory=list)
    restarts: int = 0
    cached: int = -1
    first: float = float("nan")
    finish: float = float("nan")

    @property
    def length(self) -> int:
        return self.prompt + self.made

    def name(self, k: int, size: int) -> tuple[object, ...]:
        unit = ((k + 1) * size - 1) // UNIT
        if (k + 1) * size <= self.prompt and unit < len(self.ids):
            return ("id", self.ids[unit], k)
        return ("own", self.row, k)


class Plain:
    """The replica.

    Attributes:
        free: blocks that nobody holds, the next to be taken first.
        holders: how many requests hold a block.
        names: of blocks; ``found`` has the blocks of a name, the oldest named first.
    """

    def __init__(self, model: serving.LlmModel) -> None:
        self.engine, self.cost = model.pages, model.cost
        count = self.engine.num_blocks
        self.free = list(range(count))
        self.holders = [0] * count
        self.names: dict[int, tuple[object, ...]] = {}
        self.found: dict[tuple[object, ...], list[int]] = {}
        self.waiting: list[_Request] = []
        self.running: list[_Request] = []
        self.peak = 0

    def _need(self, tokens: int) -> int:
        return -(-tokens // self.engine.block_size)

    def _extend(self, one: _Request, tokens: int) -> None:
        while len(one.table) < self._need(tokens):
            block = self.free.pop(0)
            self._forget(block)
            self.holders[block] = 1
            one.table.append(block)
        self.peak = max(self.peak, len(self.holders) - len(self.free))
        if self.engine.prefix_caching:
            for k in range(tokens // self.engine.block_size):
                if one.table[k] not in self.names:
                    self.names[one.table[k]] = name = one.name(k, self.engine.block_size)
                    self.found.setdefault(name, []).append(one.table[k])

    def _forget(self, block: int) -> None:
        if block in self.names:
            self.found[self.names.pop(block)].remove(block)

    def _release(self, one: _Request) -> None:
        for block in reversed(one.table):
            self.holders[block] -= 1
            if not self.holders[block]:
                self.free.append(block)
        one.table = []

    def _hits(self, one: _Request) -> list[int]:
        hits: list[int] = []
        while len(hits) < (one.length - 1) // self.engine.block_size:
            blocks = self.found.get(one.name(len(hits), self.engine.block_size))
            if not blocks:
                break
            hits.append(blocks[0])
        return hits

    def _evict(self) -> _Request:
        last = self.running.pop()
        self._release(last)
        last.done = 0
        last.restarts += 1
        self.waiting.insert(0, last)
        return last

    def batch(self) -> tuple[list[tuple[_Request, int]], bool]:
        """Return entries of the next iteration, and whether somebody was evicted."""
        entries: list[tuple[_Request, int]] = []
        budget, at, evicted = self.engine.token_budget, 0, False
        while at < len(self.running) and budget:
            one = self.running[at]
            tokens = min(one.length - one.done, budget)
            gone = None
            while self._need(one.done + tokens) - len(one.table) > len(self.free):
                gone, evicted = self._evict(), True
                if gone is one:
                    return entries, True
            self._extend(one, one.done + tokens)
            entries.append((one, tokens))
            budget, at = budget - tokens, at + 1
        if not evicted:
            self._admit(entries, budget)
        return entries, evicted

    def _admit(self, entries: list[tuple[_Request, int]], budget: int) -> None:
        size = self.engine.block_size
        while self.waiting and budget and len(self.running) < self.engine.max_num_seqs:
            one = self.waiting[0]
            hits = self._hits(one) if self.engine.prefix_caching else []
            tokens = min(one.length - size * len(hits), budget)
            idle = sum(not self.holders[block] for block in hits)
            upto = size * len(hits) + tokens
            for whole in {upto, one.length if self.engine.reserve_prompt else upto}:
                if max(0, self._need(whole) - len(hits)) + idle > len(self.free):
                    return
            for block in hits:
                if not self.holders[block]:
                    self.free.remove(block)
                self.holders[block] += 1
            one.table = hits
            one.done = size * len(hits)
            one.cached = one.done if one.cached < 0 else one.cached
            self._extend(one, upto)
            self.running.append(self.waiting.pop(0))
            entries.append((one, tokens))
            budget -= tokens

    def seconds(self, entries: list[tuple[_Request, int]]) -> float:
        """Return what the iteration of a batch costs, s."""
        sums = [0, 0, 0, 0, 0]
        for one, tokens in entries:
            if one.made and tokens == 1 and one.done + 1 == one.length:
                sums = [a + b for a, b in zip(sums, (0, 1, one.length, 0, 0), strict=True)]
            else:
                pairs = tokens * one.done + tokens * (tokens + 1) // 2
                sums = [a + b for a, b in zip(sums, (tokens, 0, 0, pairs, one.done), strict=True)]
        return self.cost.seconds(*sums, sequences=len(entries))

    def end(self, entries: list[tuple[_Request, int]], now: float) -> None:
        """Give the batch its tokens."""
        for one, tokens in entries:
            one.done += tokens
            if one.done == one.length:
                one.made += 1
                one.first = now if one.made == 1 else one.first
                if one.made == one.output:
                    one.finish = now
                    self._release(one)
                    self.running.remove(one)


def serve_plainly(trace: serving.RequestTrace, model: serving.LlmModel) -> list[_Request]:
    """Return what becomes of requests on one replica that refuses none of them."""
    plain = Plain(model)
    ids = trace.blocks or [()] * len(trace)
    lengths = zip(trace.prompt_tokens.tolist(), trace.output_tokens.tolist(), ids, strict=True)
    coming = [_Request(row, p, o, tuple(one)) for row, (p, o, one) in enumerate(lengths)]
    arrival, at, now = trace.arrival.tolist(), 0, 0.0
    entries: list[tuple[_Request, int]] = []
    end = float("inf")
    while at < len(coming) or entries:
        now = min(end, arrival[at] if at < len(coming) else end)
        if end == now:
            plain.end(entries, now)
            entries, end = [], float("inf")
        while at < len(coming) and arrival[at] == now:
            plain.waiting.append(coming[at])
            at += 1
        while not entries:
            entries, evicted = plain.batch()
            if not evicted:
                break
        if entries and end == float("inf"):
            end = now + plain.seconds(entries)
    assert not plain.waiting
    assert sorted(plain.free) == list(range(len(plain.holders)))
    return coming
