"""The section of a comparison's page that tells of energy: numbers, power over time, who used it.

One call makes everything that the template draws; `windtunnel.report.page` puts it in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report import power_charts, power_measures, sections

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windtunnel.energy.account import Account
    from windtunnel.sim.outcome import Outcome

#: Groupings that get a chart: column, title.
_BY: tuple[tuple[str, str], ...] = (
    ("user", "Energy by user"),
    ("vc", "Energy by virtual cluster"),
    ("gpu_type", "Energy by GPU type"),
    ("workload", "Energy by kind of work"),
)


def energy_table(outcomes: Mapping[str, Outcome], books: Mapping[str, Account]) -> sections.Table:
    """Return the numbers of energy, a measure a row, each with its difference to the first run's.

    Args:
        outcomes: run name -> outcome, in order.
        books: run name -> its energy, the same runs.
    """
    runs = [power_measures.numbers_of(book) for book in books.values()]
    return sections.measures_table(outcomes, runs, power_measures.shown(runs))


def energy_section(
    outcomes: Mapping[str, Outcome],
    books: Mapping[str, Account],
    picture: Callable[[Any, str, str, str], Any],
) -> dict[str, Any]:
    """Return what the template needs: ``table``, ``power`` (a figure), ``by`` (figures), ``notes``.

    Args:
        outcomes: run name -> outcome, in order.
        books: run name -> its energy, the same runs; at least one.
        picture: (chart, key, title, caption) -> a figure.
    """
    first = next(iter(books.values()))
    lines = "The line is the cap. " if first.cap is not None else ""
    power = picture(
        power_charts.power_over_time(books),
        "power",
        "Power over time, by source",
        f"What the building draws, from the bottom: GPUs that jobs hold, idle GPUs, hosts, and the "
        f"building\u2019s overhead (PUE {first.model.pue:g}). {lines}Means of time bins: a peak "
        "within a bin is higher.",
    )
    by = []
    for column, title in _BY:
        chart = power_charts.energy_by(books, column)
        if chart is None:
            continue
        what = "the type that jobs were on" if column == "gpu_type" else "whose jobs held the GPUs"
        caption = (
            f"Of GPUs while held, by {what}; idle GPUs, hosts and overhead are not shared out."
        )
        by.append(picture(chart, f"energy-{column}", title, caption))
    notes = list(dict.fromkeys(note for book in books.values() for note in book.notes()))
    return {"table": energy_table(outcomes, books), "power": power, "by": by, "notes": notes}
