"""Requests and replicas of a fleet that serves a language model."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.event_queue import EventQueue
from windtunnel.serving.kernels.iteration_cost import IterationCost
from windtunnel.serving.kernels.kv_blocks import KvBlocks
from windtunnel.serving.kernels.token_gaps import TokenGaps

#: Codes of the schedulers.
LLM_ORCA = cython.declare(cython.int, 0)
LLM_VLLM_V0 = cython.declare(cython.int, 1)
LLM_SARATHI = cython.declare(cython.int, 2)
LLM_VLLM_V1 = cython.declare(cython.int, 3)
#: Tokens that an id of a request trace stands for.
UNIT_TOKENS = cython.declare(cython.longlong, 512)
#: Iterations that are looked at in one go where nothing changes between them, at most.
LLM_AHEAD = cython.declare(cython.longlong, 64)
#: Minutes by which work is counted, at most: eight years. What is later counts in the last.
LLM_MINUTES = cython.declare(cython.longlong, 1 << 22)


@cython.final
@cython.cclass
class LlmFleet:
    """All that changes while requests are served.

    A request's ``made`` are its tokens so far, ``done`` those whose KV this life has, ``target``
    those that this life prefills, ``held`` its blocks; where blocks are found again, ``named`` of
    them, the first ones, stand in ``blocks``, and others may find those of its first ``shared``
    tokens. ``first``, ``last`` and ``finish`` are instants of tokens, s. Waiting requests are
    linked by ``following``.

    A replica's ``running`` are those admitted, under `LLM_VLLM_V1` also those in flight; ``batch``
    and ``share`` are the requests of an iteration under way and the tokens of each. Slots of
    iterations are replica x stages + number. ``planned`` iterations of one batch are under way in
    one go from ``begin`` on; ``ends`` and ``times`` are theirs. ``minutes`` has a row for each
    minute from the first arrival on: seconds of the iterations that start in it, of each pool, with
    and without a prefill.
    """

    # Requests.
    arrival: cython.const[cython.double][::1]
    prompt: cython.const[cython.longlong][::1]
    output: cython.const[cython.longlong][::1]
    units: cython.const[cython.longlong][::1]
    unit_start: cython.const[cython.longlong][::1]
    shared: cython.const[cython.longlong][::1]
    made: cython.longlong[::1]
    done: cython.longlong[::1]
    target: cython.longlong[::1]
    held: cython.longlong[::1]
    named: cython.longlong[::1]
    following: cython.longlong[::1]
    is_brought: cython.uchar[::1]
    restarts: cython.longlong[::1]
    found: cython.longlong[::1]
    first: cython.double[::1]
    last: cython.double[::1]
    finish: cython.double[::1]
    # Replicas.
    replicas: cython.longlong
    stages: cython.longlong
    links: cython.longlong
    scheduler: cython.longlong
    budget: cython.longlong[::1]
    most: cython.longlong[::1]
    size: cython.longlong[::1]
    total: cython.longlong[::1]
    margin: cython.longlong[::1]
    reserve: cython.longlong[::1]
    caches: cython.longlong[::1]
    whole: cython.longlong[::1]
    pool: cython.longlong[::1]
    unit_bits: cython.longlong[::1]
    cost: IterationCost
    other_cost: IterationCost
    free: cython.longlong[::1]
    least_free: cython.longlong[::1]
    head: cython.longlong[::1]
    tail: cython.longlong[::1]
    waiting: cython.longlong[::1]
    load: cython.longlong[::1]
    tokens: cython.longlong[::1]
    admitted: cython.longlong[::1]
    blocked: cython.uchar[::1]
    running: cython.longlong[:, ::1]
    num_running: cython.longlong[::1]
    in_flight: cython.longlong[::1]
    stage_free: cython.double[:, ::1]
    batch: cython.longlong[:, ::1]
    share: cython.longlong[:, ::1]
    entries: cython.longlong[::1]
    planned: cython.longlong[::1]
    begin: cython.double[::1]
    ends: cython.double[:, ::1]
    times: cython.double[:, ::1]
    busy: cython.double[::1]
    prefilling: cython.double[::1]
    iterations: cython.longlong[::1]
    minutes: cython.double[:, ::1]
    last_minute: cython.longlong
    # The batch that is being formed.
    evicted: cython.bint
    prefill: cython.longlong
    pairs: cython.longlong
    context: cython.longlong
    decoding: cython.longlong
    kv: cython.longlong
    prefilled: cython.longlong
    failed: cython.bint
    # Scratch.
    aside: cython.longlong[::1]
    at_slack: cython.longlong[::1]
    idle_hits: cython.longlong
    blocks: KvBlocks
    clock: EventQueue
    gaps: TokenGaps

    def __init__(
        self,
        requests: dict[str, numpy.ndarray],
        settings: dict[str, numpy.ndarray],
        stages: int,
        cost: IterationCost,
        other_cost: IterationCost,
    ) -> None:
        self.cost = cost
        self.other_cost = other_cost
        self.stages = stages
        self._take_requests(requests)
        self._take_settings(settings)
        self._make_replicas()
        self.gaps = TokenGaps()

    def _take_requests(self, given: dict[str, numpy.ndarray]) -> None:
        self.arrival = given["arrival"]
        self.prompt = given["prompt"]
        self.output = given["output"]
        self.units = given["units"]
        self.unit_start = given["unit_start"]
        count = len(given["arrival"])
        self.shared = given["shared"]
        self.made = numpy.zeros(count, dtype=numpy.int64)
        self.done = numpy.zeros(count, dtype=numpy.int64)
        self.target = given["prompt"].copy()
        self.held = numpy.zeros(count, dtype=numpy.int64)
        self.named = numpy.zeros(count, dtype=numpy.int64)
        self.following = numpy.full(count, -1, dtype=numpy.int64)
        self.is_brought = numpy.zeros(count, dtype=numpy.uint8)
        self.restarts = numpy.zeros(count, dtype=numpy.int64)
        self.found = numpy.full(count, -1, dtype=numpy.int64)
        self.first = numpy.full(count, numpy.nan)
        self.last = numpy.full(count, numpy.nan)
        self.finish = numpy.full(count, numpy.nan)

    def _take_settings(self, given: dict[str, numpy.ndarray]) -> None:
        self.scheduler = int(given["scheduler"][0])
        self.budget = given["token_budget"]
        self.most = given["max_num_seqs"]
        self.size = given["block_size"]
        self.total = given["num_blocks"]
        self.margin = given["watermark"]
        self.reserve = given["reserve_tokens"]
        self.caches = given["prefix_caching"]
        self.whole = given["reserve_prompt"]
        self.pool = given["pool"]
        per_unit = numpy.maximum(UNIT_TOKENS // given["block_size"], 1)
        self.unit_bits = numpy.log2(per_unit).astype(numpy.int64)
        self.replicas = len(given["pool"])
        self.links = int((given["pool"] == 1).any()) * int((given["pool"] == 0).sum())
        self.free = given["num_blocks"].copy()
        self.least_free = given["num_blocks"].copy()
        self.aside = numpy.empty(len(self.prompt), dtype=numpy.int64)
        self.at_slack = numpy.zeros(int(given["block_size"].max()) + 1, dtype=numpy.int64)
        cached = numpy.where(given["prefix_caching"] > 0, given["num_blocks"], 0)
        self.blocks = KvBlocks(cached, len(self.prompt))

    def _make_replicas(self) -> None:
        count, stages = self.replicas, self.stages
        slots = count * stages
        capacity = max(1, min(int(numpy.max(self.most)) * stages, len(self.prompt)))
        self.head = numpy.full(count, -1, dtype=numpy.int64)
        self.tail = numpy.full(count, -1, dtype=numpy.int64)
        self.waiting = numpy.zeros(count, dtype=numpy.int64)
        self.load = numpy.zeros(count, dtype=numpy.int64)
        self.tokens = numpy.zeros(count, dtype=numpy.int64)
        self.admitted = numpy.zeros(count, dtype=numpy.int64)
        self.blocked = numpy.zeros(count, dtype=numpy.uint8)
        self.running = numpy.empty((count, capacity), dtype=numpy.int64)
        self.num_running = numpy.zeros(count, dtype=numpy.int64)
        self.in_flight = numpy.zeros(count, dtype=numpy.int64)
        self.stage_free = numpy.zeros((count, stages))
        self.batch = numpy.empty((slots, capacity), dtype=numpy.int64)
        self.share = numpy.empty((slots, capacity), dtype=numpy.int64)
        self.entries = numpy.zeros(slots, dtype=numpy.int64)
        self.planned = numpy.zeros(count, dtype=numpy.int64)
        self.begin = numpy.zeros(count)
        self.ends = numpy.empty((count, LLM_AHEAD))
        self.times = numpy.empty((count, LLM_AHEAD))
        self.busy = numpy.zeros(count)
        self.prefilling = numpy.zeros(count)
        self.iterations = numpy.zeros(count, dtype=numpy.int64)
        self.minutes = numpy.zeros((16, 4))
        self.last_minute = 0
        self.clock = EventQueue(slots + self.links)

    def data(self) -> dict[str, numpy.ndarray]:
        """Return what became of requests and replicas, as `LlmOutcome` names it."""
        return {
            "first_token": numpy.asarray(self.first),
            "finish": numpy.asarray(self.finish),
            "restarts": numpy.asarray(self.restarts),
            "cached_tokens": numpy.maximum(self.found, 0),
            "busy": numpy.asarray(self.busy),
            "prefilling": numpy.asarray(self.prefilling),
            "iterations": numpy.asarray(self.iterations),
            "minutes": numpy.asarray(self.minutes)[: self.last_minute + 1],
            "peak_blocks": numpy.asarray(self.total) - numpy.asarray(self.least_free),
            "prefill_tokens": self.prefilled,
            "gap_total": self.gaps.total,
            **dict(zip(("gaps", "gap_counts"), self.gaps.data(), strict=True)),
        }

    @compiled
    def minute(self, when: cython.double) -> cython.longlong:
        """Return the minute of an instant, from the first arrival on."""
        last: cython.double = LLM_MINUTES - 1
        return cython.cast(cython.longlong, min(last, (when - self.arrival[0]) / 60))

    @compiled
    def spend(
        self,
        r: cython.longlong,
        minute: cython.longlong,
        time: cython.double,
        prefills: cython.bint,
    ) -> cython.void:
        """Count the time of iterations that a replica, or a stage of it, starts in a minute."""
        if minute >= self.minutes.shape[0]:
            with cython.gil:
                self.lengthen(minute)
        self.last_minute = max(self.last_minute, minute)
        self.minutes[minute, 2 * self.pool[r] + (0 if prefills else 1)] += time

    def lengthen(self, minute: int) -> None:
        """Give ``minutes`` at least twice the rows, and that of a minute."""
        rows = numpy.asarray(self.minutes)
        self.minutes = numpy.zeros((max(minute + 1, 2 * len(rows)), 4))
        numpy.asarray(self.minutes)[: len(rows)] = rows

    @compiled
    def queue(self, r: cython.longlong, i: cython.longlong) -> cython.void:
        """Let a request wait behind the others."""
        self.following[i] = -1
        if self.head[r] < 0:
            self.head[r] = i
        else:
            self.following[self.tail[r]] = i
        self.tail[r] = i
        self.waiting[r] += 1

    @compiled
    def call_next(self, r: cython.longlong) -> cython.longlong:
        """Take the head of those who wait."""
        i: cython.longlong = self.head[r]
        self.head[r] = self.following[i]
        self.waiting[r] -= 1
        self.admitted[r] += 1
        return i

    @compiled
    def enter(
        self, slot: cython.longlong, i: cython.longlong, count: cython.longlong
    ) -> cython.void:
        """Add a request with some tokens to the batch that is being formed."""
        at: cython.longlong = self.entries[slot]
        length: cython.longlong = self.prompt[i] + self.made[i]
        done: cython.longlong = self.done[i]
        self.batch[slot, at] = i
        self.share[slot, at] = count
        self.entries[slot] = at + 1
        if (
            self.made[i] > 0
            and count == 1
            and done + 1 == length
            and (self.scheduler == LLM_VLLM_V1 or done >= self.target[i])
        ):
            self.decoding += 1
            self.kv += length
        else:
            self.prefill += count
            self.context += done
            self.pairs += count * done + count * (count + 1) // 2

    @compiled
    def hold(self, r: cython.longlong, i: cython.longlong, count: cython.longlong) -> cython.void:
        """Let a request hold so many blocks more."""
        self.held[i] += count
        self.lower(r, count)
        if self.caches[r]:
            self.blocks.take(r, count)

    @compiled
    def lower(self, r: cython.longlong, count: cython.longlong) -> cython.void:
        """Count blocks as free no more."""
        self.free[r] -= count
        if self.free[r] < self.least_free[r]:
            self.least_free[r] = self.free[r]

    @compiled
    def let_go(self, r: cython.longlong, i: cython.longlong) -> cython.void:
        """Take all blocks of a request back, the last one first."""
        self.blocked[r] = False
        if self.caches[r] == 0:
            self.free[r] += self.held[i]
        else:
            self.blocks.give(r, self.held[i] - self.named[i])
            self.free[r] += self.held[i] - self.named[i] + self.blocks.release(r, i)
        self.held[i] = 0
        self.named[i] = 0

    @compiled
    def find(
        self, r: cython.longlong, i: cython.longlong, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Return the run that has block ``at`` of a request, and in ``blocks.stop`` how far.

        Its name is the trace's id, or the request's own.
        """
        shared: cython.longlong = self.shared[i] // self.size[r]
        unit: cython.longlong = at >> self.unit_bits[r]
        if at >= shared:
            return self.blocks.find(r, cython.cast(cython.int, -1 - i), at, end)
        end = min(end, shared, (unit + 1) << self.unit_bits[r])
        unit = self.units[self.unit_start[i] + unit]
        return self.blocks.find(r, cython.cast(cython.int, unit), at, end)

    @compiled
    def name(self, r: cython.longlong, i: cython.longlong, upto: cython.longlong) -> cython.void:
        """Name the blocks that ``upto`` tokens of a request fill, if others may ask for them."""
        end: cython.longlong = min(upto, self.shared[i]) // self.size[r]
        unit: cython.longlong
        stop: cython.longlong
        while self.named[i] < end:
            unit = self.named[i] >> self.unit_bits[r]
            stop = min(end, (unit + 1) << self.unit_bits[r])
            unit = self.units[self.unit_start[i] + unit]
            self.blocks.name(r, i, cython.cast(cython.int, unit), self.named[i], stop)
            self.named[i] = stop
            self.blocked[r] = False  # what is named now may be what the head waits for

    @compiled
    def name_own(self, r: cython.longlong, i: cython.longlong) -> cython.void:
        """Name the full blocks of a request that it alone will ask for."""
        end: cython.longlong = self.done[i] // self.size[r]
        if self.named[i] < end:
            self.blocks.name(r, i, cython.cast(cython.int, -1 - i), self.named[i], end)
            self.named[i] = end

    @compiled
    def evict(self, r: cython.longlong, i: cython.longlong) -> cython.void:
        """Let an admitted request start over, before all who wait."""
        if self.caches[r]:
            self.name_own(r, i)
        self.let_go(r, i)
        self.done[i] = 0
        self.target[i] = self.prompt[i] + self.made[i]
        self.is_brought[i] = False
        self.restarts[i] += 1
        self.following[i] = self.head[r]
        if self.head[r] < 0:
            self.tail[r] = i
        self.head[r] = i
        self.waiting[r] += 1
        self.admitted[r] -= 1
        self.evicted = True
