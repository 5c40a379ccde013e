"""A report of what the GPU hours cost: whose bill it is, with an idle line that adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.plain import fields_of
from windtunnel.report.answer_charts import part_bars
from windtunnel.report.columns import TOP, most, rows_table, top_table
from windtunnel.report.format import MINUS, count, gpu_time, number, percent, plural
from windtunnel.report.names import clean, labels
from windtunnel.report.result import Drawing, Part, Result, left_out_notes, notes_of, subtitle_of
from windtunnel.report.sections import Cell, Fact, Line, Table, hours_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.characterize.cost import Bill
    from windtunnel.energy import Account
    from windtunnel.report.columns import Columns
    from windtunnel.traces.trace import Trace

Row = dict[str, Any]
_BY = {"user": "User", "vc": "Virtual cluster"}
_J_PER_KWH = 3.6e6
_LARGE = 100.0
IDLE, ALL = "held by nobody", "the bill"
#: What a cost is in, where the prices name no currency.
_UNIT = ", in the prices\u2019 currency"


def cost_answer(found: Bill, trace: Trace, book: Account | None = None) -> Result:
    """Return the answer to "what do the GPU hours cost, and who pays?".

    Args:
        found: the bill.
        trace: whose it is.
        book: energy of the recorded history; None = not asked for.
    """
    parts = [part for column in _BY if (part := _by_part(found, column)) is not None]
    parts += _type_parts(found)
    parts += _energy_parts(book)
    share = found.idle / found.total if found.total > 0 else None
    where = "unknown" if found.cluster is None else clean(found.cluster.describe(), 200)
    facts = [
        Fact("The bill", money(found, found.total), f"{found.total:.6f}"),
        Fact("Held by jobs", money(found, found.allocated), note=gpu_time(_held(found))),
        Fact("Held by nobody", money(found, found.idle), note=percent(share)),
        Fact(
            "Paid for",
            plural(round(found.num_gpus), "GPU"),
            note=f"{number(found.span_hours)} h, first submission to last end",
        ),
    ]
    return Result(
        title=f"What the GPU hours cost: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, plural(round(found.num_gpus), "GPU")),
        headline=_headline(found, share),
        facts=facts,
        parts=parts,
        cautions=_cautions(found),
        notes=notes_of(
            trace,
            [f"Cluster: {where}.", *_price_notes(found), *left_out_notes(found.recorded)],
            book.notes() if book else [],
        ),
    )


def cost_data(found: Bill, book: Account | None = None) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``currency``, ``total``, ``allocated``, ``idle`` (which is total - allocated),
    ``num_gpus``, ``span_hours``, ``gpu_time`` (GPU-s held), ``by_user``, ``by_vc``,
    ``by_gpu_type``, ``prices``, ``cluster_known``, ``left_out`` (reason -> jobs that are in no
    sum of GPU time), ``energy`` (null, or its numbers with ``by_user`` and ``by_vc``).
    """
    energy = None
    if book is not None:
        by = {f"by_{column}": book.by(column).to_pylist() for column in _BY}
        energy = {**book.summary(), **by}
    return {
        "currency": found.prices.currency,
        **fields_of(found, "total", "allocated", "idle", "num_gpus", "span_hours"),
        "gpu_time": _held(found),
        "by_user": found.by("user").to_pylist(),
        "by_vc": found.by("vc").to_pylist(),
        "by_gpu_type": found.by_type().to_pylist(),
        "prices": {"gpus": found.prices.gpus, "default": found.prices.default},
        "cluster_known": found.cluster is not None,
        "left_out": found.recorded.left_out,
        "energy": energy,
    }


def money(found: Bill, amount: float) -> str:
    """Return an amount with its currency."""
    currency = found.prices.currency
    return f"{_amount(amount)} {clean(currency, 12)}" if currency else _amount(amount)


def _amount(amount: float) -> str:
    digits = 0 if abs(amount) >= _LARGE else 2
    return f"{amount:,.{digits}f}".replace("-", MINUS)


def _held(found: Bill) -> float:
    return float(found.recorded.gpu_time.sum())


def _headline(found: Bill, idle: float | None) -> str:
    if found.total <= 0:
        return "There is nothing to pay for: no GPU time, or a price of 0."
    text = f"{money(found, found.total)} for {plural(round(found.num_gpus), 'GPU')}"
    if idle is not None and idle >= 0:
        text += f"; {percent(idle)} of it for GPU hours that nobody held"
    for column in ("vc", "user"):
        top = found.by(column).to_pylist()
        if len(top) > 1 and top[0]["share"]:
            name = f"{_BY[column].lower()} {clean(top[0][column])}"
            text += f", {percent(top[0]['share'])} for {name}, which holds most"
            break
    return text + "."


def _cautions(found: Bill) -> list[str]:
    lines = []
    if found.cluster is None:
        lines.append(
            "The trace does not say how many GPUs the cluster has: the bill is for as many as "
            "were ever held at once. --cluster gives the real number."
        )
    if found.idle < 0:
        lines.append(
            "Jobs held more GPU hours than the cluster has in that time, so the idle line is "
            "negative: the cluster given is too small, or the log counts some GPUs twice."
        )
    return lines


def _price_notes(found: Bill) -> list[str]:
    prices = found.prices
    notes = [f"{clean(name)}: {price:g} a GPU hour." for name, price in prices.gpus.items()]
    if prices.default is not None:
        notes.append(f"Every {'other ' if notes else ''}GPU: {prices.default:g} an hour.")
    if len(prices.gpus) > 1:
        notes.append(
            "A job that may run on several types is charged their mean price, by how many GPUs of "
            "each there are."
        )
    return notes


def _by_part(found: Bill, column: str) -> Part | None:
    jobs = found.recorded.jobs
    if jobs[column].null_count == jobs.num_rows:
        return None
    rows = found.by(column).to_pylist()
    unit = f", {clean(found.prices.currency, 12)}" if found.prices.currency else ""
    table = top_table(_BY[column], _columns(f"cost{unit}"), rows, column, _summed)
    share = found.idle / found.total if found.total > 0 else None
    for name, cost, part in ((IDLE, found.idle, percent(share)), (ALL, found.total, "100 %")):
        cells = [Cell(""), Cell(""), _money(cost), Cell(part)]
        table.lines.append(Line(name, cells, group="Together"))
    nouns = "virtual clusters" if column == "vc" else "users"
    drawing = Drawing(
        f"cost-by-{column}",
        f"Cost by {_BY[column].lower()}",
        f"{most(len(rows), nouns)}; what nobody held is in the table alone; "
        f"n = {plural(jobs.num_rows, 'job')}.",
        lambda: _chart(rows[:TOP], column, f"Cost{unit or _UNIT}"),
    )
    lead = "The rows add up to the bill."
    return Part(f"By {_BY[column].lower()}", lead, [(f"Cost by {nouns}", table)], [drawing])


def _columns(cost: str = "cost") -> Columns:
    return (
        ("jobs", "num_jobs", count),
        ("GPU hours", "gpu_time", hours_cell),
        (cost, "cost", _money),
        ("of the bill", "share", percent),
    )


def _summed(rows: Sequence[Row]) -> Row:
    row: Row = {key: sum(part[key] for part in rows) for key in ("num_jobs", "gpu_time", "cost")}
    shares = [part["share"] for part in rows]
    row["share"] = None if None in shares else sum(shares)
    return row


def _money(amount: float) -> Cell:
    return Cell(_amount(amount), f"{amount:,.6f}")


def _chart(rows: Sequence[Row], column: str, title: str) -> Any:
    names = labels((row[column] for row in rows), 24)
    part = "GPU hours held by jobs"
    bars = [
        {"who": name, "part": part, "cost": row["cost"]}
        for name, row in zip(names, rows, strict=True)
    ]
    return part_bars(bars, of="who", parts=[part], value="cost", title=title, shown=names)


def _type_parts(found: Bill) -> list[Part]:
    rows = found.by_type().to_pylist()
    if len(rows) < 2:  # noqa: PLR2004 - one type is no split
        return []
    table = top_table("GPU type asked for", _columns(), rows, "gpu_type", _summed)
    return [Part("By GPU type", "", [("Cost by GPU type", table)])]


def _energy_parts(book: Account | None) -> list[Part]:
    if book is None:
        return []
    numbers = book.summary()
    rows = [
        Line(words, [Cell(_kwh(numbers[key]))])
        for key, words in (
            ("jobs_j", "GPUs that jobs held"),
            ("idle_j", "GPUs that nobody held"),
            ("host_j", "hosts"),
            ("overhead_j", "the building (PUE)"),
            ("energy_j", "all"),
        )
    ]
    lines = []
    if numbers["carbon_kg"] is not None:
        lines.append(f"It emitted {numbers['carbon_kg']:,.1f} kg CO2eq.")
    if numbers["cost"] is not None:
        lines.append(f"The energy cost {numbers['cost']:,.2f}, which is not in the bill above.")
    tables = [("Energy", Table("Energy of", ["kWh"], rows))]
    for column, words in _BY.items():
        found = book.by(column).to_pylist()
        found.sort(key=lambda row: -row["energy_j"])
        if any(row[column] != "(none)" for row in found):
            columns = [one for one in _ENERGY if one[1] in found[0]]
            table = rows_table(words, columns, found[:TOP], column)
            tables.append((f"Energy by {words.lower()}", table))
    return [Part("Energy and carbon", " ".join(lines), tables)]


def _kwh(joules: float | None) -> str:
    return number(None if joules is None else joules / _J_PER_KWH)


_ENERGY: Columns = (("kWh", "energy_j", _kwh), ("kg CO2eq", "carbon_kg", "{:,.2f}".format))
