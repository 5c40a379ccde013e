"""Tables for papers: LaTeX with booktabs, every text escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.sections import Cell, Table

_ESCAPED = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\u2212": "$-$",
    "\u2013": "--",
    "\u00d7": r"$\times$",
    "\u03b7": r"$\eta$",
    "\u25b2": r"$\blacktriangle$",
    "\u25bc": r"$\blacktriangledown$",
    "\u2264": r"$\leq$",
    "\u2019": "'",
    "\u00a0": "~",
    "\u00b1": r"$\pm$",
    "\u2026": r"\ldots{}",
    "\u2192": r"$\rightarrow$",
    "\u221e": r"$\infty$",
    "\u03b2": r"$\beta$",
    "\u03c1": r"$\rho$",
    "\u00b2": "$^2$",
    "\u00b0": r"$^\circ$",
    "\u00b5": r"$\mu$",
    "\u00b7": r"$\cdot$",
    # LaTeX's own fonts have other characters in these places.
    "<": "$<$",
    ">": "$>$",
    "|": r"$\vert$",
    '"': "''",
}

#: What pages put before a difference -> what papers do.
_SIGNS = {"\u25b2": "+", "\u25bc": "\u2212", "=": ""}


def escaped(text: str) -> str:
    r"""Return a text as LaTeX shows it.

    >>> print(escaped("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(_ESCAPED.get(char, char) for char in text)


def latex(table: Table, caption: str = "") -> str:
    """Return a table as LaTeX; needs the packages booktabs and amssymb.

    Args:
        table: notes of cells stand in brackets behind them; of those that compare with the first
            column the relative change alone.
        caption: of the table; empty = none.
    """
    under = table.under or [""]
    heads = [*table.lead, *(f"{name} {what}".strip() for name in table.columns for what in under)]
    lines = [
        r"\begin{table*}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        *([rf"\caption{{{escaped(caption)}}}"] if caption else []),
        rf"\begin{{tabular}}{{l{'r' * len(heads)}}}",
        r"\toprule",
        _row([table.corner, *heads]),
        r"\midrule",
    ]
    group = ""
    for line in table.lines:
        if line.group and line.group != group:
            group = line.group
            lines.append(rf"\multicolumn{{{len(heads) + 1}}}{{l}}{{\emph{{{escaped(group)}}}}} \\")
        lines.append(_row([line.label, *map(_cell, line.cells)]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table*}", ""])


def _cell(cell: Cell) -> str:
    """Return a cell as narrow as papers have them."""
    note = cell.note or ""
    if note[:1] in _SIGNS:
        change = note[1:].removesuffix(" better").removesuffix(" worse").partition(" (")[0]
        note = _SIGNS[note[0]] + change.strip() if note[0] != "=" else ""
    return f"{cell.text} ({note})" if note else cell.text


def _row(texts: Sequence[str]) -> str:
    return " & ".join(map(escaped, texts)) + r" \\"
