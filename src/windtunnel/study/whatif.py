"""What would change? The same jobs flown as things are and as they might be, paired job by job.

Differences carry intervals from a bootstrap over blocks: weeks of submission, or users (Künsch,
*Annals of Statistics* 17, 1989: blocks keep what depends on each other together). A draw takes as
many blocks as there are, with replacement, and the same ones for both runs, so that what both runs
share cancels. Intervals tell how much the answer hangs on which weeks, or users, one happened to
see.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.recorded import Recorded
from windtunnel.quantiles import quantile_of_counted, quantiles
from windtunnel.sim.flight import FINISHED
from windtunnel.sim.metrics import gpu_seconds_held, gpu_seconds_up, horizon, size_classes
from windtunnel.sim.timeline import resample
from windtunnel.study.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.characterize.cost import Prices
    from windtunnel.sim.outcome import Outcome
    from windtunnel.study.recording import Recording

#: What blocks are made of.
BLOCKS: tuple[str, ...] = ("weeks", "users")
_DAY = 86400.0
_WEEK = 7 * _DAY
#: Draws of a bootstrap, and the coverage of its intervals.
DRAWS, COVERAGE = 400, 0.8
#: Where weeks are fewer than this, days are drawn.
FEWEST_WEEKS = 6
#: Waits below this are as good as none beside the model's error, s.
_SHORT = 1.0
_HOUR = 3600.0


@dataclass(frozen=True)
class WhatIf:
    """Two runs of the same jobs.

    Attributes:
        before: as things are.
        after: as they might be.
        changes: what is different, one phrase each.
        blocks: what the bootstrap draws, one of `BLOCKS`.
        prices: what a GPU hour costs; None = cost is not asked for.
        seed: of the draws.
        recorded: the same jobs as recorded; None = nothing is, or it is not compared.
        recording: the jobs, of which a flight may have further attempts; None = all that are flown.
    """

    before: Outcome
    after: Outcome
    changes: tuple[str, ...]
    blocks: str
    prices: Prices | None
    seed: int = 0
    recorded: Outcome | None = None
    recording: Recording | None = None

    def table(self) -> list[dict[str, Any]]:
        """Return the numbers before and after.

        Returns:
            A row a number: ``measure`` (``avg_wait``, ``p50_wait``, ``p90_wait``, ``avg_jct``,
            s; ``utilization``, 0..1; with prices ``cost``, of the cluster's GPUs over the time in
            which jobs are submitted, and ``cost_per_gpu_hour``, of a GPU hour held in the run),
            ``recorded`` (null where it is not known), ``before``, ``after``, ``change`` (after -
            before), ``low`` and ``high`` (of the change; null where there are fewer than two
            blocks, and of ``cost``, which hangs on no job).
        """
        return [dict(row) for row in self._rows]

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        """The rows of `table`: they are drawn for the screen, the page and --json alike."""
        rows = []
        for name, fraction, (one, other), theirs in (
            ("avg_wait", None, self._waits, self._recorded[0]),
            ("p50_wait", 0.5, self._waits, self._recorded[0]),
            ("p90_wait", 0.9, self._waits, self._recorded[0]),
            ("avg_jct", None, self._jcts, self._recorded[1]),
        ):
            low, high = self._interval(fraction, one, other, theirs)
            row = _row(name, _of(one, fraction), _of(other, fraction), low, high)
            rows.append(row | {"recorded": None if theirs is None else _of(theirs, fraction)})
        low, high = self._drawn(lambda used: float(used[1] - used[0]))
        one, other = (outcome.metrics()["utilization"] for outcome in (self.before, self.after))
        rows.append(_row("utilization", one, other, low, high))
        if self.prices is not None:
            rows += self._costs(self.prices)
        return rows

    def by_size(self) -> list[dict[str, Any]]:
        """Return mean and P90 waits by size: ``size``, ``n``, ``before_*`` and ``after_*`` (s)."""
        codes, labels = size_classes(self.before.num_gpus[: self._count])
        one, other = self._waits
        found = []
        for code in np.unique(codes[self._both]):
            mask = codes[self._both] == code
            row: dict[str, Any] = {"size": labels[code], "n": int(mask.sum())}
            for name, wait in (("before", one[mask]), ("after", other[mask])):
                row |= {f"{name}_avg_wait": _of(wait), f"{name}_p90_wait": _of(wait, 0.9)}
            found.append(row)
        return found

    @cached_property
    def num_blocks(self) -> int:
        """Blocks that have jobs."""
        return int(self._blocks.max(initial=-1)) + 1

    @cached_property
    def block_length(self) -> float:
        """A week, or where a log has a record and few weeks a day, s."""
        span = float(np.ptp(self._submit)) if len(self._submit) else 0.0
        return _DAY if self.recorded is not None and span < FEWEST_WEEKS * _WEEK else _WEEK

    @cached_property
    def _both(self) -> np.ndarray:
        """Bool array (n,): jobs that finished in both runs."""
        one, other = self._ended
        both: np.ndarray = one & other
        return both

    @cached_property
    def _ended(self) -> tuple[np.ndarray, np.ndarray]:
        """Bool arrays (n,): jobs that finished before, and after."""
        one, other = (
            np.asarray(run.flight.status[: self._count] == FINISHED)
            for run in (self.before, self.after)
        )
        return one, other

    @property
    def num_pairs(self) -> int:
        """Jobs that finished in both runs."""
        return int(self._both.sum())

    @property
    def num_unpaired(self) -> tuple[int, int]:
        """Jobs that finished only as things are, and only as they might be."""
        one, other = self._ended
        return int((one & ~other).sum()), int((other & ~one).sum())

    @property
    def _submit(self) -> np.ndarray:
        if self.recording is not None:
            return self.recording.submitted
        return self.before.submit_time[: self._count]

    @cached_property
    def _count(self) -> int:
        """Jobs of both runs; further attempts, in a closed loop, are behind them."""
        if self.recording is not None:
            return len(self.recording.submitted)
        return min(len(run.submit_time) for run in (self.before, self.after))

    @cached_property
    def _waits(self) -> tuple[np.ndarray, np.ndarray]:
        return self._since_submission("start")

    @cached_property
    def _jcts(self) -> tuple[np.ndarray, np.ndarray]:
        return self._since_submission("end")

    def _since_submission(self, event: str) -> tuple[np.ndarray, np.ndarray]:
        """Return how long after its submission each job of both runs started, or ended, s."""
        found = []
        for run in (self.before, self.after):
            time: np.ndarray = getattr(run.flight, event)[: self._count]
            found.append((time - self._submit_in(run))[self._both])
        return found[0], found[1]

    def waits_in(self, run: Outcome) -> np.ndarray:
        """Return how long the jobs waited in one of the runs, s, shape (n,); NaN = no start."""
        waits: np.ndarray = run.flight.start[: self._count] - self._submit_in(run)
        return waits

    def _submit_in(self, run: Outcome) -> np.ndarray:
        if self.recording is not None:
            return self.recording.submitted_in(run)
        return run.submit_time[: self._count]

    @cached_property
    def _recorded(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Waits and completion times as recorded; jobs that still run end as in the replay."""
        if self.recorded is None:
            return None, None
        flight = self.recorded.flight
        ran = self.before.flight.run_time[: self._count]
        end = np.where(np.isnan(flight.end), flight.start + ran, flight.end)
        return (flight.start - self._submit)[self._both], (end - self._submit)[self._both]

    def off_by(self) -> tuple[float, float] | None:
        """Return what the P90 of a replay may have to be multiplied by, at both ends.

        None where the record is not known, or one block has all jobs.
        """
        (waits, _), (theirs, _) = self._waits, self._recorded
        if theirs is None or self.num_blocks < 2:  # noqa: PLR2004 - one block has no spread
            return None
        rng, drawn = self._drawing((waits, theirs), 0.9)
        return covering(np.array([missed(drawn()) ** rng.random() for _ in range(DRAWS)]))

    def verdict(self) -> Verdict | None:
        """Judge the run as things are by the record; None where there is none."""
        if self.recorded is None:
            return None
        return Verdict.of(
            self.waits_in(self.before),
            self.recorded.flight.start - self._submit,
        )

    @cached_property
    def _blocks(self) -> np.ndarray:
        """Int array (pairs,): the block of each job."""
        return self._numbered(self._both)

    @cached_property
    def blocks_of_all(self) -> np.ndarray:
        """Int array (n,): the block of each job, whether it finished or not."""
        return self._numbered(np.ones(len(self._both), dtype=bool))

    def _numbered(self, chosen: np.ndarray) -> np.ndarray:
        """Return the blocks of chosen jobs, numbered from 0 on."""
        if self.blocks == "users":
            codes, _ = Recorded.of(self.before.jobs).names("user")
            raw = codes[: self._count][chosen]
        else:
            submit = self._submit[chosen]
            raw = ((submit - submit.min(initial=np.inf)) // self.block_length).astype(np.int64)
        _, place = np.unique(raw, return_inverse=True)
        blocks: np.ndarray = place.ravel()
        return blocks

    def _interval(
        self,
        fraction: float | None,
        one: np.ndarray,
        other: np.ndarray,
        recorded: np.ndarray | None,
    ) -> tuple[float | None, float | None]:
        """Return the interval of the change of a statistic; none with fewer than two blocks."""
        if self.num_blocks < 2:  # noqa: PLR2004 - one block has no spread
            return None, None
        several = (one, other) if recorded is None else (one, other, recorded)
        rng, drawn = self._drawing(several, fraction)
        changes = np.empty(DRAWS)
        for draw in range(DRAWS):
            before, after, *theirs = drawn()
            if theirs:
                power = rng.random()
                after *= missed(drawn()) ** power
                before *= missed([before, after, *theirs]) ** power
            changes[draw] = after - before
        return covering(changes)

    def _drawing(
        self, several: Sequence[np.ndarray], fraction: float | None
    ) -> tuple[np.random.Generator, Callable[[], list[float]]]:
        """Return what draws blocks and gives a statistic of each of the values in them."""
        parts = [_drawn_of(values, self._blocks, fraction) for values in several]
        rng = np.random.default_rng(self.seed)

        def drawn() -> list[float]:
            chosen = rng.integers(0, self.num_blocks, self.num_blocks)
            return [of(chosen) for of in parts]

        return rng, drawn

    @cached_property
    def _used(self) -> tuple[np.ndarray, np.ndarray]:
        """GPU-s held, and GPU-s that are up, in each block before and after, shapes (2, blocks).

        Of weeks: in each week of the runs, the last one shorter. Of users: by each user's jobs, of
        an even part of all that are up.
        """
        held: list[np.ndarray] = []
        there: list[np.ndarray] = []
        spans = [horizon(one) for one in (self.before, self.after)]
        flown = [span for span in spans if span[1] > span[0]] or spans
        begin = min(first for first, _ in flown)  # a run that rejects all jobs has no span
        for outcome, (first, last) in zip((self.before, self.after), spans, strict=True):
            if self.blocks == "users":
                codes, labels = Recorded.of(outcome.jobs).names("user")
                held.append(np.bincount(codes, gpu_seconds_held(outcome), minlength=len(labels)))
                up = gpu_seconds_up(outcome, first, last)
                there.append(np.full(len(labels), up / max(1, len(labels))))
                continue
            weeks = max(1, int(np.ceil((max(end for _, end in flown) - begin) / _WEEK)))
            use = outcome.utilization()
            time, values = use["time"].to_numpy(), use["gpus"].to_numpy()
            stop = begin + weeks * _WEEK
            _, means = resample(time, values, start=begin, stop=stop, bins=weeks)
            edges = np.minimum(begin + np.arange(weeks + 1) * _WEEK, max(last, begin))
            held.append(means * _WEEK if len(means) else np.zeros(weeks))
            there.append(np.array([gpu_seconds_up(outcome, *week) for week in pairwise(edges)]))
        return np.array(held), np.array(there)

    def _drawn(self, statistic: Callable[[np.ndarray], float]) -> tuple[float | None, float | None]:
        """Return the interval of a statistic of (utilisation before, after) over drawn blocks."""
        held, there = self._used
        blocks = held.shape[1]
        if blocks < 2:  # noqa: PLR2004 - one block has no spread
            return None, None
        rng = np.random.default_rng(self.seed)
        found = []
        for _ in range(DRAWS):
            chosen = rng.integers(0, blocks, blocks)
            whole = there[:, chosen].sum(axis=1)
            if (whole > 0).all():
                found.append(statistic(held[:, chosen].sum(axis=1) / whole))
        known = np.array(found)[np.isfinite(found)]
        return covering(known) if len(known) else (None, None)

    def _costs(self, prices: Prices) -> list[dict[str, Any]]:
        costs, each, rates = [], [], []
        before, after = self.before.cluster, self.after.cluster
        types, aliases = (*before.gpu_types, *after.gpu_types), before.aliases | after.aliases
        prices = prices.named_as(types, aliases)
        for outcome in (self.before, self.after):
            kinds = [node for node in outcome.cluster.node_types if node.gpus]
            rate = sum(node.count * node.gpus * prices.of(node.gpu_type) for node in kinds)
            submit = outcome.submit_time
            costs.append(rate * float(submit.max() - submit.min()) / _HOUR)
            rates.append(rate / outcome.cluster.num_gpus)
            used = outcome.metrics()["utilization"]
            each.append(rates[-1] / used if used else None)

        def dearer(used: np.ndarray) -> float:
            with np.errstate(divide="ignore", invalid="ignore"):
                found: np.ndarray = np.array(rates) / used
            return float(found[1] - found[0])

        low, high = self._drawn(dearer)
        one, other = each
        return [
            _row("cost", costs[0], costs[1], None, None),
            _row("cost_per_gpu_hour", one, other, low, high),
        ]


def missed(numbers: Sequence[float]) -> float:
    """Return what a replay's wait must be multiplied by to be the recorded one.

    Args:
        numbers: the replayed one first, the recorded one last, s.
    """
    return (max(numbers[-1], 0.0) + _SHORT) / (max(numbers[0], 0.0) + _SHORT)


def _row(
    measure: str, before: float | None, after: float | None, low: float | None, high: float | None
) -> dict[str, Any]:
    change = after - before if before is not None and after is not None else None
    return {
        "measure": measure,
        "recorded": None,
        "before": before,
        "after": after,
        "change": change,
        "low": low,
        "high": high,
    }


def _of(values: np.ndarray, fraction: float | None = None) -> float:
    """Return a quantile of values, or without a fraction their mean; NaN of none."""
    if fraction is not None:
        return float(quantiles(values, fraction))
    return float(values.mean()) if len(values) else float("nan")


def _drawn_of(
    values: np.ndarray, blocks: np.ndarray, fraction: float | None
) -> Callable[[np.ndarray], float]:
    """Return what gives `_of` the values in drawn blocks, by the numbers of the blocks.

    Values are sorted, or added up, once; a draw only says how often each of them counts.
    """
    sizes = np.bincount(blocks)
    if fraction is None:
        sums = np.bincount(blocks, values)
        return lambda chosen: float(sums[chosen].sum() / sizes[chosen].sum())
    order = np.argsort(values)
    ordered, block_of = values[order], blocks[order]

    def quantile(chosen: np.ndarray) -> float:
        until = np.cumsum(np.bincount(chosen, minlength=len(sizes))[block_of])
        return quantile_of_counted(ordered, until, fraction)

    return quantile


def covering(draws: np.ndarray) -> tuple[float, float]:
    """Return between what `COVERAGE` of some draws lie."""
    low, high = quantiles(draws, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]).tolist()
    return low, high
