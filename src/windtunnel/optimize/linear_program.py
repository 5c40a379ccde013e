"""`LinearProgram`: a sparse linear program with named rows and columns, solved by HiGHS.

Columns may be asked to be whole numbers; such a program is solved by branch and cut.

The model is kept in the solver between solves: where only bounds, costs or coefficients change,
the next solve starts from the last basis. Further objectives can be given in order of importance
(`solve(then=...)`): each is optimised over the optimal face of those before it, which makes the
answer independent of the optimal vertex that a solver happens to find.

HiGHS: Huangfu and Hall, "Parallelizing the dual revised simplex method", 2018. Optimal face by
complementary slackness: Mangasarian, "Uniqueness of solution in linear programming", 1979.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from windtunnel.errors import InfeasibleError, SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

#: Columns from which interior point beats the simplex method on share models (many equal rows).
INTERIOR_POINT_COLUMNS = 1_500
#: Feasibility and optimality tolerance of the simplex method.
TOLERANCE = 1e-9
#: A reduced cost above this share of the largest cost pins its column on the optimal face.
_FACE = 1e-8
#: Rows named in an error.
_NAMED = 5


@dataclass(frozen=True)
class Solution:
    """An optimal solution.

    Attributes:
        objective: the first objective's value.
        values: float array of shape (columns,).
        duals: float array of shape (rows,): change of the objective per unit of a row's bound; NaN
            in a program with whole-numbered columns, which has none.
        iterations: simplex iterations, all objectives together; 0 with whole-numbered columns.
    """

    objective: float
    values: np.ndarray
    duals: np.ndarray
    iterations: int


class Labels(Protocol):
    """What tells the columns or rows of a block apart; read only where an error names one."""

    def __len__(self) -> int:
        """Return how many there are."""

    def __getitem__(self, at: int, /) -> object:
        """Return one."""


@dataclass(frozen=True)
class _Block:
    """Rows or columns that were added together under one name."""

    name: str
    first: int
    labels: Labels


class LinearProgram:
    """A linear program that is built once, in blocks, and may be solved many times.

    Args:
        name: what to call the model in errors.
        maximize: whether the objective is maximised; else minimised.

    >>> lp = LinearProgram("bakery", maximize=True)
    >>> loaves = lp.add_columns("loaves", ["rye", "oat"], cost=[2, 3])
    >>> flour = lp.add_rows("flour", ["all"], upper=4)
    >>> lp.add_coefficients([0, 0], loaves, [1, 1])
    >>> lp.solve().objective
    12.0
    """

    def __init__(self, name: str, *, maximize: bool = False) -> None:
        self.name = name
        self._maximize = maximize
        self._column_blocks: list[_Block] = []
        self._row_blocks: list[_Block] = []
        self._costs = self._lower = self._upper = np.empty(0)
        self._whole = np.empty(0, dtype=np.bool_)
        self._row_lower = self._row_upper = np.empty(0)
        self._triplets: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._places: dict[tuple[int, int], tuple[np.ndarray, int]] = {}
        self._highs: Any = None
        self._solver = ""

    @property
    def num_columns(self) -> int:
        """Number of columns."""
        return len(self._costs)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self._row_lower)

    def add_columns(
        self,
        name: str,
        labels: Labels,
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        cost: ArrayLike = 0.0,
        integer: bool = False,
    ) -> np.ndarray:
        """Add a block of columns, one a label; return their indices, shape (labels,).

        Args:
            name: what the block is called in errors.
            labels: what tells its columns apart.
            lower: a number or one a column; ``-inf`` = none.
            upper: as ``lower``.
            cost: coefficient in the objective, a number or one a column.
            integer: whether the columns must be whole numbers.
        """
        first, count = self.num_columns, len(labels)
        self._column_blocks.append(_Block(name, first, labels))
        self._lower = np.append(self._lower, _filled(lower, count))
        self._upper = np.append(self._upper, _filled(upper, count))
        self._costs = np.append(self._costs, _filled(cost, count))
        self._whole = np.append(self._whole, np.full(count, integer))
        self._highs = None
        return np.arange(first, first + count)

    def add_rows(
        self,
        name: str,
        labels: Labels,
        *,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
    ) -> np.ndarray:
        """Add a block of rows ``lower <= row <= upper``; return their indices, shape (labels,)."""
        first, count = self.num_rows, len(labels)
        self._row_blocks.append(_Block(name, first, labels))
        self._row_lower = np.append(self._row_lower, _filled(lower, count))
        self._row_upper = np.append(self._row_upper, _filled(upper, count))
        self._highs = None
        return np.arange(first, first + count)

    def add_coefficients(self, rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        """Add entries of the matrix, broadcast to one shape; each (row, column) at most once."""
        spread = np.broadcast_arrays(
            np.asarray(rows, np.int32), np.asarray(columns, np.int32), np.asarray(values, float)
        )
        # Copies: a broadcast view has one value behind many entries, which may change later.
        self._triplets.append((spread[0].flatten(), spread[1].flatten(), spread[2].flatten()))
        self._places = {}
        self._highs = None

    def set_costs(self, columns: ArrayLike, costs: ArrayLike) -> None:
        """Change costs; the next solve starts from the last basis."""
        which = np.asarray(columns, np.int32).ravel()
        self._costs[which] = costs
        if self._highs is not None:
            self._highs.changeColsCost(len(which), which, self._costs[which])

    def set_column_bounds(self, columns: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change bounds of columns; the next solve starts from the last basis."""
        which = np.asarray(columns, np.int32).ravel()
        self._lower[which], self._upper[which] = lower, upper
        if self._highs is not None:
            self._push_columns(which, self._lower[which], self._upper[which])

    def set_row_bounds(self, rows: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change bounds of rows; the next solve starts from the last basis."""
        which = np.asarray(rows, np.int32).ravel()
        self._row_lower[which], self._row_upper[which] = lower, upper
        if self._highs is not None:
            self._push_rows(which, self._row_lower[which], self._row_upper[which])

    def set_coefficients(self, rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        """Change entries that `add_coefficients` gave; the next solve starts from the last basis.

        Raises:
            KeyError: there is no such entry.
        """
        if not self._places:
            for held in self._triplets:
                spots = enumerate(zip(held[0].tolist(), held[1].tolist(), strict=True))
                self._places |= {spot: (held[2], at) for at, spot in spots}
        changed = (np.ravel(a).tolist() for a in np.broadcast_arrays(rows, columns, values))
        change = None if self._highs is None else self._highs.changeCoeff
        for row, column, value in zip(*changed, strict=True):
            held_values, at = self._places[row, column]
            held_values[at] = value
            if change is not None:
                change(row, column, value)

    def row_name(self, row: int) -> str:
        """Return a row's name in the model's words."""
        return _name_of(self._row_blocks, row)

    def column_name(self, column: int) -> str:
        """Return a column's name in the model's words."""
        return _name_of(self._column_blocks, column)

    def dense_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows as a dense matrix (rows, columns) with their lower and upper bounds."""
        matrix = np.zeros((self.num_rows, self.num_columns))
        for rows, columns, values in self._triplets:
            matrix[rows, columns] = values
        return matrix, self._row_lower.copy(), self._row_upper.copy()

    def solve(
        self,
        *,
        method: Literal["auto", "simplex", "interior"] = "auto",
        then: Sequence[ArrayLike | Callable[[], ArrayLike]] = (),
        gap: float = 0.0,
    ) -> Solution:
        """Solve the program.

        Args:
            method: ``simplex`` (starts from the last basis), ``interior`` (interior point, then
                crossover to a vertex), or ``auto``: interior point for a first solve with at
                least `INTERIOR_POINT_COLUMNS` columns, else simplex.
            then: further objectives in order of importance, each a cost a column, in the sense
                of the program, or a function that gives it, asked only where the objectives before
                leave anything open; each is optimised without giving up any of those. Not with
                whole-numbered columns, which leave no face to stay on.
            gap: with whole-numbered columns: how far the objective may be from the best, as a
                share of it.

        Returns:
            The solution; its objective and duals are the first objective's.

        Raises:
            InfeasibleError: no values satisfy all rows (named), or the objective is unbounded.
            SpecError: an unknown method, or ``then`` with whole-numbered columns.
        """
        if method not in {"auto", "simplex", "interior"}:
            raise SpecError.unknown("method", str(method), ("auto", "simplex", "interior"))
        if self._whole.any():
            if then:
                raise SpecError("then", "expected no further objectives with whole numbers.")
            self._highs = self._highs or self._loaded()
            self._highs.setOptionValue("mip_rel_gap", gap)
            return self._run("choose")
        if self._highs is None:
            self._highs = self._loaded()
            large = self.num_columns >= INTERIOR_POINT_COLUMNS
            chosen = ("interior" if large else "simplex") if method == "auto" else method
        else:
            chosen = "simplex" if method == "auto" else method
        solution = self._run(chosen)
        if then and self.num_columns:
            solution = self._continued(solution, then)
        return solution

    def _run(self, method: str) -> Solution:
        import highspy

        highs = self._highs
        # Named methods would solve the relaxation of a program with whole numbers.
        if method != self._solver:
            highs.setOptionValue("solver", {"interior": "ipm"}.get(method, method))
            self._solver = method
        if method == "interior":
            highs.clearSolver()  # an old basis would send it back to the simplex method
        highs.run()
        status = highs.getModelStatus()
        found = highspy.HighsModelStatus
        if status != found.kOptimal:
            return self._without_optimum(status)
        answer = highs.getSolution()
        values, duals, iterations = np.array(answer.col_value), np.array(answer.row_dual), 0
        if self._whole.any():
            values = np.where(self._whole, np.round(values), values)
            duals = np.full(self.num_rows, np.nan)
        else:
            counted = ("simplex_iteration_count", "crossover_iteration_count")
            iterations = sum(highs.getInfoValue(name)[1] for name in counted)
        return Solution(highs.getObjectiveValue(), values, duals, iterations)

    def _without_optimum(self, status: Any) -> Solution:
        """Return the solution of a program without columns; of others, raise what went wrong."""
        import highspy

        found = highspy.HighsModelStatus
        if status == found.kModelEmpty:  # no column: the rows are 0, which their bounds may forbid
            barred = np.flatnonzero((self._row_lower > 0) | (self._row_upper < 0))
            if len(barred):
                raise InfeasibleError(self.name, f"{self.row_name(int(barred[0]))} is 0")
            return Solution(0.0, np.empty(0), np.zeros(self.num_rows), 0)
        if status in {found.kInfeasible, found.kUnboundedOrInfeasible}:
            raise InfeasibleError(self.name, self._conflict())
        if status == found.kUnbounded:
            raise InfeasibleError(self.name, "its objective has no bound")
        words = self._highs.modelStatusToString(status)
        raise InfeasibleError(self.name, f"the solver stopped early ({words})")

    def _continued(
        self, first: Solution, then: Sequence[ArrayLike | Callable[[], ArrayLike]]
    ) -> Solution:
        """Optimise further objectives over the optimal face, then restore the model."""
        last, count = first, first.iterations
        lower, upper = self._lower.copy(), self._upper.copy()
        row_lower, row_upper = self._row_lower.copy(), self._row_upper.copy()
        costs: np.ndarray = self._costs
        try:
            for objective in then:
                scale = _FACE * max(1.0, float(np.abs(costs).max(initial=0.0)))
                answer = self._highs.getSolution()
                on_face = np.abs(np.array(answer.col_dual)) > scale
                rows_on_face = np.abs(last.duals) > scale
                if self._is_corner(
                    on_face | (lower == upper), rows_on_face | (row_lower == row_upper)
                ):
                    break
                activity = np.array(answer.row_value)
                pinned = _pin(lower, upper, last.values, on_face)
                self._push_columns(pinned, lower[pinned], upper[pinned])
                pinned = _pin(row_lower, row_upper, activity, rows_on_face)
                self._push_rows(pinned, row_lower[pinned], row_upper[pinned])
                given = objective() if callable(objective) else objective
                costs = _in_reach(_filled(given, self.num_columns))
                self._push_costs(costs)
                try:
                    last = self._run("simplex")
                except InfeasibleError:
                    # The face is thinner than the solver's tolerance. The solution at hand lies on
                    # it: pin it where it stands, and count what it breaks by rounding as kept.
                    lower, upper = _around(lower, upper, last.values, on_face)
                    row_lower, row_upper = _around(row_lower, row_upper, activity, rows_on_face)
                    self._push_columns(np.arange(self.num_columns), lower, upper)
                    self._push_rows(np.arange(self.num_rows), row_lower, row_upper)
                    last = self._run("simplex")
                count += last.iterations
        finally:
            moved = ((lower != self._lower) | (upper != self._upper)).nonzero()[0]
            self._push_columns(moved, self._lower[moved], self._upper[moved])
            moved = ((row_lower != self._row_lower) | (row_upper != self._row_upper)).nonzero()[0]
            self._push_rows(moved, self._row_lower[moved], self._row_upper[moved])
            self._push_costs(self._costs)
        return Solution(first.objective, last.values, first.duals, count)

    def _is_corner(self, columns: np.ndarray, rows: np.ndarray) -> bool:
        """Return whether the optimal face is a single point.

        It is if nothing that is not in the basis can move on it.

        Args:
            columns: those that cannot, shape (columns,).
            rows: those whose activity cannot, shape (rows,).
        """
        import highspy

        fixed = np.concatenate([columns, rows])
        if int(fixed.sum()) < self.num_columns:  # as many are not in the basis
            return False
        basis = self._highs.getBasis()
        if not basis.valid:  # an interior point
            return False
        if self._solver == "simplex":
            # Much quicker than to ask for every status; but after other solvers HiGHS crashes here.
            known, basic = self._highs.getBasicVariables()
            if known == highspy.HighsStatus.kOk:
                fixed[np.where(basic < 0, self.num_columns - 1 - basic, basic)] = True
                return bool(fixed.all())
        status = [*basis.col_status, *basis.row_status]
        loose = (~fixed).nonzero()[0].tolist()
        return all(status[at] == highspy.HighsBasisStatus.kBasic for at in loose)

    def _push_columns(self, which: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        self._highs.changeColsBounds(len(which), which.astype(np.int32), lower, upper)

    def _push_rows(self, which: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        self._highs.changeRowsBounds(len(which), which.astype(np.int32), lower, upper)

    def _push_costs(self, costs: np.ndarray) -> None:
        every = np.arange(self.num_columns, dtype=np.int32)
        self._highs.changeColsCost(self.num_columns, every, costs)

    def _loaded(self) -> Any:
        """Return a solver that holds the model."""
        import highspy

        starts, indices, values = self._by_column()
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = self.num_columns, self.num_rows
        model.col_cost_, model.col_lower_, model.col_upper_ = self._costs, self._lower, self._upper
        model.row_lower_, model.row_upper_ = self._row_lower, self._row_upper
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = starts, indices
        model.a_matrix_.value_ = values
        sense = highspy.ObjSense
        model.sense_ = sense.kMaximize if self._maximize else sense.kMinimize
        if self._whole.any():
            kinds = highspy.HighsVarType
            model.integrality_ = [kinds.kInteger if w else kinds.kContinuous for w in self._whole]
        highs = highspy.Highs()
        options: dict[str, bool | int | float] = {
            "output_flag": False,
            "threads": 1,  # the same answer on every machine
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            "ipm_optimality_tolerance": TOLERANCE,
            "mip_abs_gap": TOLERANCE,
        }
        for option, value in options.items():
            highs.setOptionValue(option, value)
        highs.passModel(model)
        self._solver = ""
        return highs

    def _by_column(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the matrix column by column: starts (columns + 1,), row indices, values."""
        if not self._triplets:
            return np.zeros(self.num_columns + 1, np.int32), np.empty(0, np.int32), np.empty(0)
        rows, columns, values = (np.concatenate(part) for part in zip(*self._triplets, strict=True))
        order = np.lexsort((rows, columns))
        counts = np.bincount(columns, minlength=self.num_columns)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return starts, rows[order], values[order]

    def _conflict(self) -> str:
        """Say which rows cannot hold together: those with weight in the best violation's proof.

        A second program lets every row be broken at a price; where its prices are not zero, the
        row is part of a contradiction (Farkas).
        """
        crossed = [self.column_name(int(c)) for c in np.flatnonzero(self._lower > self._upper)]
        crossed += [
            self.row_name(int(r)) for r in np.flatnonzero(self._row_lower > self._row_upper)
        ]
        if crossed:
            return f"{crossed[0]} has a lower bound above its upper one"
        softened = LinearProgram(f"{self.name}: conflict")
        softened.add_columns("as in the model", range(self.num_columns))
        softened._lower, softened._upper = self._lower.copy(), self._upper.copy()
        rows = softened.add_rows("as in the model", range(self.num_rows))
        softened._row_lower = self._row_lower.copy()
        softened._row_upper = self._row_upper.copy()
        softened._triplets = list(self._triplets)
        for sign in (1.0, -1.0):
            slack = softened.add_columns("violation", rows.tolist(), cost=1.0)
            softened.add_coefficients(rows, slack, sign)
        prices = softened.solve(method="simplex").duals
        if not (np.abs(prices) > TOLERANCE).any() and self._whole.any():
            return "its rows hold together, but not with whole numbers"
        guilty = [self.row_name(int(row)) for row in np.flatnonzero(np.abs(prices) > TOLERANCE)]
        if not guilty:
            return "its rows hold together within rounding, but the solver found no way"
        more = f" and {len(guilty) - _NAMED} more" if len(guilty) > _NAMED else ""
        return f"{', '.join(guilty[:_NAMED])}{more} cannot hold together"


def distinct_costs(count: int) -> np.ndarray:
    """Return costs in [1, 2) without a pattern: over a face they have one optimum in practice.

    As a last objective they make one of many equally good solutions the only best one.

    The mixing function of SplitMix64 (Steele, Lea and Flood, OOPSLA'14) on 1, 2, ...: the same
    numbers on every machine, and no sums of a few that are equal, as multiples of one number
    would have; shape (count,).
    """
    bits = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return 1.0 + (bits >> np.uint64(11)).astype(float) / 2.0**53


def _in_reach(costs: np.ndarray) -> np.ndarray:
    """Return costs whose largest is at least 1: the tolerance on prices is absolute."""
    largest = float(np.abs(costs).max(initial=0.0))
    return costs / largest if 0 < largest < 1 else costs


def _filled(value: ArrayLike, count: int) -> np.ndarray:
    if np.ndim(value) == 0:  # np.full is quicker than a broadcast, and runs ask very often
        return np.full(count, value, float)
    return np.array(np.broadcast_to(np.asarray(value, float), (count,)))


def _pin(lower: np.ndarray, upper: np.ndarray, values: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Fix, in place, what has a price at the bound it stands on; return the indices of those."""
    at_lower = np.abs(values - lower) <= np.abs(upper - values)
    bound = np.where(at_lower, lower, upper)
    pinned = (which & np.isfinite(bound)).nonzero()[0]
    lower[pinned] = upper[pinned] = bound[pinned]
    return pinned


def _around(
    lower: np.ndarray, upper: np.ndarray, values: np.ndarray, which: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds that values keep exactly, and that are equal where ``which`` says so."""
    low, high = np.minimum(lower, values), np.maximum(upper, values)
    return np.where(which, values, low), np.where(which, values, high)


def _name_of(blocks: Sequence[_Block], index: int) -> str:
    block = next(b for b in reversed(blocks) if b.first <= index)
    return f"{block.name} {quote(block.labels[index - block.first])}"
