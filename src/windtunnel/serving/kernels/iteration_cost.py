"""What an iteration costs: straight lines, measured curves and grids, a roofline, kernel tables."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled

#: Codes of the forms.
COST_LINEAR = cython.declare(cython.int, 0)
COST_PIECEWISE = cython.declare(cython.int, 1)
COST_ROOFLINE = cython.declare(cython.int, 2)
COST_LAYERS = cython.declare(cython.int, 3)


@compiled
def segment(
    knots: cython.const[cython.double][::1],
    low: cython.longlong,
    high: cython.longlong,
    at: cython.double,
) -> cython.longlong:
    """Return which of the knots low .. high - 1 begins the line that ``at`` is on."""
    last: cython.longlong = high - 2
    middle: cython.longlong
    if last < low:
        return low
    while low < last:
        middle = (low + last + 1) // 2
        if knots[middle] <= at:
            low = middle
        else:
            last = middle - 1
    return low


@compiled
def along(
    knots: cython.const[cython.double][::1],
    values: cython.const[cython.double][::1],
    low: cython.longlong,
    high: cython.longlong,
    at: cython.double,
) -> cython.double:
    """Return a curve's value: straight lines, flat below the first knot, the last line goes on."""
    k: cython.longlong = segment(knots, low, high, at)
    share: cython.double = weight(knots, k, high, at)
    if share == 0:
        return values[k]
    return values[k] + (values[k + 1] - values[k]) * share


@compiled
def weight(
    knots: cython.const[cython.double][::1],
    k: cython.longlong,
    high: cython.longlong,
    at: cython.double,
) -> cython.double:
    """Return how far ``at`` is along the line from knot k: 0 there and below, 1 at its end."""
    if k + 1 >= high or at <= knots[k]:
        return 0.0
    return (at - knots[k]) / (knots[k + 1] - knots[k])


@cython.final
@cython.cclass
class IterationCost:
    """The time of an iteration, of any form.

    Attributes:
        form: its code.
        numbers: linear: a, b, c, d, q; piecewise: a, c, d, seconds a prefill token of context;
            roofline: operations a second, bytes a second, 2 x parameters, 4 x layers x hidden,
            weight bytes, KV bytes a token; layers: how many.
        reduces: seconds a token, and seconds, of all-reduces and overhead.
        knots, times: the time of a prefill, or of dense kernels, by tokens.
        contexts, batches, grid: of decodes, by tokens a sequence and by sequences; may be empty.
        counts, count_times: kernels by sequences.
        chunks, decodes: knots of measured attention.
        slices: which slice stands for each pair of them.
        slice_start: rows of each slice, by tokens in the cache of the prefill.
        row_at, row_start: those tokens; where each row's points start.
        cached, attention: points of the rows, by tokens in the cache of a decode.
    """

    form: cython.int
    has_grid: cython.bint
    numbers: cython.const[cython.double][::1]
    reduces: cython.const[cython.double][::1]
    knots: cython.const[cython.double][::1]
    times: cython.const[cython.double][::1]
    contexts: cython.const[cython.double][::1]
    batches: cython.const[cython.double][::1]
    grid: cython.const[cython.double][:, ::1]
    counts: cython.const[cython.double][::1]
    count_times: cython.const[cython.double][::1]
    chunks: cython.const[cython.double][::1]
    decodes: cython.const[cython.double][::1]
    slices: cython.const[cython.longlong][:, ::1]
    slice_start: cython.const[cython.longlong][::1]
    row_at: cython.const[cython.double][::1]
    row_start: cython.const[cython.longlong][::1]
    cached: cython.const[cython.double][::1]
    attention: cython.const[cython.double][::1]

    def __init__(self, form: cython.int, tables: dict[str, numpy.ndarray]) -> None:
        none = numpy.zeros(0)
        self.form = form
        self.numbers = tables["numbers"]
        self.reduces = tables.get("reduces", numpy.zeros(2))
        self.knots = tables.get("knots", none)
        self.times = tables.get("times", none)
        self.contexts = tables.get("contexts", none)
        self.batches = tables.get("batches", none)
        self.grid = tables.get("grid", numpy.zeros((0, 0)))
        self.has_grid = len(self.contexts) > 0
        self.counts = tables.get("counts", none)
        self.count_times = tables.get("count_times", none)
        self.chunks = tables.get("chunks", none)
        self.decodes = tables.get("decodes", none)
        self.slices = tables.get("slices", numpy.zeros((0, 0), dtype=numpy.int64))
        self.slice_start = tables.get("slice_start", numpy.zeros(0, dtype=numpy.int64))
        self.row_at = tables.get("row_at", none)
        self.row_start = tables.get("row_start", numpy.zeros(0, dtype=numpy.int64))
        self.cached = tables.get("cached", none)
        self.attention = tables.get("attention", none)

    def seconds(
        self,
        prefill: cython.double,
        decoding: cython.double,
        kv: cython.double,
        pairs: cython.double,
        context: cython.double,
        sequences: cython.double,
    ) -> float:
        """Return the time of an iteration, s; see `windtunnel.serving.llm_costs.Cost.seconds`."""
        return self.of(prefill, decoding, kv, pairs, context, sequences)

    @compiled
    def of(
        self,
        prefill: cython.double,
        decoding: cython.double,
        kv: cython.double,
        pairs: cython.double,
        context: cython.double,
        sequences: cython.double,
    ) -> cython.double:
        """Return the time of an iteration, s."""
        if self.form == COST_LINEAR:
            return (
                self.numbers[0]
                + self.numbers[1] * prefill
                + self.numbers[2] * decoding
                + self.numbers[3] * kv
                + self.numbers[4] * pairs
            )
        if self.form == COST_PIECEWISE:
            return self.piecewise(prefill, decoding, kv, context)
        if self.form == COST_ROOFLINE:
            return self.roofline(prefill, decoding, kv, pairs, context)
        return self.layers(prefill, decoding, kv, context, sequences)

    @compiled
    def piecewise(
        self,
        prefill: cython.double,
        decoding: cython.double,
        kv: cython.double,
        context: cython.double,
    ) -> cython.double:
        """Return a curve by prefill tokens and what decoding adds to it."""
        whole: cython.double
        decode: cython.double = 0.0
        if decoding > 0:
            if self.has_grid:
                decode = self.on_grid(kv / decoding, decoding)
            else:
                decode = self.numbers[0] + self.numbers[1] * decoding + self.numbers[2] * kv
        if prefill <= 0:
            return decode
        whole = along(self.knots, self.times, 0, self.knots.shape[0], prefill)
        whole += self.numbers[3] * context
        decode -= self.numbers[0]
        return whole + (decode if decoding > 0 and decode > 0 else 0.0)

    @compiled
    def on_grid(self, context: cython.double, batch: cython.double) -> cython.double:
        """Return the measured time of decodes: by sequences first, then by tokens of each."""
        k: cython.longlong = segment(self.contexts, 0, self.contexts.shape[0], context)
        share: cython.double = weight(self.contexts, k, self.contexts.shape[0], context)
        low: cython.double = self.of_batch(k, batch)
        if share == 0:
            return low
        return low + (self.of_batch(k + 1, batch) - low) * share

    @compiled
    def of_batch(self, row: cython.longlong, batch: cython.double) -> cython.double:
        """Return the time of decodes in a row of the grid."""
        k: cython.longlong = segment(self.batches, 0, self.batches.shape[0], batch)
        share: cython.double = weight(self.batches, k, self.batches.shape[0], batch)
        if share == 0:
            return self.grid[row, k]
        return self.grid[row, k] + (self.grid[row, k + 1] - self.grid[row, k]) * share

    @compiled
    def roofline(
        self,
        prefill: cython.double,
        decoding: cython.double,
        kv: cython.double,
        pairs: cython.double,
        context: cython.double,
    ) -> cython.double:
        """Return the longer of computing and reading, with all-reduces and overhead."""
        tokens: cython.double = prefill + decoding
        work: cython.double = self.numbers[2] * tokens + self.numbers[3] * (pairs + kv)
        read: cython.double = self.numbers[4] + self.numbers[5] * (kv + context + prefill)
        work /= self.numbers[0]
        read /= self.numbers[1]
        return (work if work > read else read) + self.reduces[0] * tokens + self.reduces[1]

    @compiled
    def layers(
        self,
        prefill: cython.double,
        decoding: cython.double,
        kv: cython.double,
        context: cython.double,
        sequences: cython.double,
    ) -> cython.double:
        """Return the sum of measured kernels."""
        tokens: cython.double = prefill + decoding
        of_each: cython.double = (kv - decoding) / decoding if decoding > 0 else 0.0
        whole: cython.double = along(self.knots, self.times, 0, self.knots.shape[0], tokens)
        whole += self.numbers[0] * self.attended(prefill, context, decoding, of_each)
        whole += along(self.counts, self.count_times, 0, self.counts.shape[0], sequences)
        return whole + self.reduces[0] * tokens + self.reduces[1]

    @compiled
    def attended(
        self,
        chunk: cython.double,
        context: cython.double,
        decoding: cython.double,
        of_each: cython.double,
    ) -> cython.double:
        """Return the attention of one layer, s: by decodes in two chunks, then by the chunk."""
        k: cython.longlong = segment(self.chunks, 0, self.chunks.shape[0], chunk)
        share: cython.double = weight(self.chunks, k, self.chunks.shape[0], chunk)
        low: cython.double = self.by_decodes(k, context, decoding, of_each)
        if share == 0:
            return low
        return low + (self.by_decodes(k + 1, context, decoding, of_each) - low) * share

    @compiled
    def by_decodes(
        self,
        row: cython.longlong,
        context: cython.double,
        decoding: cython.double,
        of_each: cython.double,
    ) -> cython.double:
        """Return the attention beside a measured chunk."""
        k: cython.longlong = segment(self.decodes, 0, self.decodes.shape[0], decoding)
        share: cython.double = weight(self.decodes, k, self.decodes.shape[0], decoding)
        low: cython.double = self.in_slice(self.slices[row, k], context, of_each)
        if share == 0:
            return low
        return low + (self.in_slice(self.slices[row, k + 1], context, of_each) - low) * share

    @compiled
    def in_slice(
        self, one: cython.longlong, context: cython.double, of_each: cython.double
    ) -> cython.double:
        """Return the attention in a slice: by the cache of a decode, then by the prefill's."""
        first: cython.longlong = self.slice_start[one]
        stop: cython.longlong = self.slice_start[one + 1]
        k: cython.longlong = segment(self.row_at, first, stop, context)
        share: cython.double = weight(self.row_at, k, stop, context)
        low: cython.double = self.in_row(k, of_each)
        if share == 0:
            return low
        return low + (self.in_row(k + 1, of_each) - low) * share

    @compiled
    def in_row(self, row: cython.longlong, of_each: cython.double) -> cython.double:
        """Return the attention in a row."""
        return along(
            self.cached, self.attention, self.row_start[row], self.row_start[row + 1], of_each
        )
