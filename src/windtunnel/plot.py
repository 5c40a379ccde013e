"""Charts of runs and studies: ``wt.plot.ecdf(runs)`` ...

Each is an Altair chart: it shows itself in a notebook, as a picture that loads nothing unless
another renderer of Altair's was chosen, and ``chart.save("waits.pdf")`` writes it as SVG, PDF, PNG
or HTML. Runs are an `Outcome`, a `Comparison`, or a mapping from names to outcomes;
the first is drawn in black.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from windtunnel.errors import SpecError, quote
from windtunnel.report import charts
from windtunnel.sim.outcome import Outcome
from windtunnel.study.compare import Comparison
from windtunnel.study.grid.store import Results

if TYPE_CHECKING:
    from typing import TypeAlias

    from altair import TopLevelMixin

    from windtunnel.study.grid.paired import Paired

    Runs: TypeAlias = Outcome | Comparison | Mapping[str, Outcome]

__all__ = ["ecdf", "forest", "gantt", "queue", "utilization", "waits_by_size"]


def __dir__() -> list[str]:
    return __all__


def ecdf(runs: Runs, quantity: Literal["wait", "jct"] = "wait") -> TopLevelMixin:
    """Return the share of jobs that waited, or took, at most so long; a curve a run.

    Args:
        runs: what to draw.
        quantity: ``wait`` (of jobs that started) or ``jct`` (completion time of finished ones).

    Raises:
        SpecError: there are no such runs, or another quantity.

    >>> import windtunnel as wt
    >>> jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
    >>> wt.plot.ecdf(wt.compare(jobs, "pool:1", ["fifo", "sjf"])).to_dict()["config"]["font"]
    'sans-serif'
    """
    if quantity not in ("wait", "jct"):
        raise SpecError.unknown("quantity", str(quantity), ("wait", "jct"))
    return _shown(charts.cdf(_outcomes(runs), quantity))


def utilization(runs: Runs) -> TopLevelMixin:
    """Return the share of GPUs in use over time; a panel a run, the first run behind each.

    Raises:
        SpecError: there are no such runs.
    """
    return _shown(charts.utilization(_outcomes(runs)))


def queue(runs: Runs) -> TopLevelMixin:
    """Return the number of waiting jobs over time; a panel a run, the first run behind each.

    Raises:
        SpecError: there are no such runs.
    """
    return _shown(charts.queue(_outcomes(runs)))


def waits_by_size(runs: Runs) -> TopLevelMixin:
    """Return waits by GPUs of a job: a line from P50 to P99 with a dot at P90, a colour a run.

    Raises:
        SpecError: there are no such runs.
    """
    return _shown(charts.waits_by_size(_outcomes(runs)))


def gantt(outcome: Outcome, window: tuple[float, float] | None = None) -> TopLevelMixin:
    """Return who was where when: a bar a stay, or of a large run the use of nodes as shades.

    Args:
        outcome: the run.
        window: from when until when, s since the trace's epoch; None = all of it.

    Raises:
        SpecError: nothing ran then, or the run knows no nodes.
    """
    from windtunnel.report.occupancy import occupancy

    drawn = occupancy(outcome, window)
    if drawn is None:
        raise SpecError("plot", "nothing to draw: no job ran then, or the run knows no nodes.")
    return _shown(drawn.chart)


def forest(study: Results | Paired, metric: str = "avg_wait") -> TopLevelMixin:
    """Return what each policy of a study changes against the first, with its interval.

    Where the first's mean is zero, and so no ratio can be formed, differences are drawn.

    Args:
        study: its results, or the comparisons made of them
            (`windtunnel.study.grid.paired.compare_results`).
        metric: a column of the results; of comparisons, one of theirs.

    Raises:
        SpecError: there is no such metric, or nothing to compare.
    """
    from windtunnel.report.study_result import forest_chart
    from windtunnel.study.grid.paired import compare_results

    found = compare_results(study, metrics=(metric,)) if isinstance(study, Results) else study
    if metric not in found.metrics:
        raise SpecError.unknown("metric", metric, found.metrics)
    chart = forest_chart(found, metric)
    if chart is None:
        raise SpecError("plot", f"nothing to draw: no pair of runs tells {quote(metric)}.")
    return _shown(chart)


def _shown(chart: Any) -> TopLevelMixin:
    """Return a chart that a notebook shows as a picture, where Altair would ask the network."""
    import altair as alt

    def bundle(*args: Any, **options: Any) -> Any:
        if alt.renderers.active != "default":
            return type(chart)._repr_mimebundle_(chart, *args, **options)
        import vl_convert

        svg = vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])
        return {"image/svg+xml": svg, "text/plain": repr(type(chart).__name__)}

    object.__setattr__(chart, "_repr_mimebundle_", bundle)  # Altair's own would go into the chart
    found: TopLevelMixin = chart
    return found


def _outcomes(runs: Runs) -> Mapping[str, Outcome]:
    """Return runs by name.

    Raises:
        SpecError: they are none.
    """
    if isinstance(runs, Outcome):
        runs = {str(runs.settings.get("policy", "run")): runs}
    elif isinstance(runs, Comparison):
        runs = runs.outcomes
    if isinstance(runs, Mapping) and runs and all(isinstance(o, Outcome) for o in runs.values()):
        return runs
    raise SpecError(
        "plot", f"found {quote(runs)}; expected an Outcome, a Comparison or names of outcomes."
    )
