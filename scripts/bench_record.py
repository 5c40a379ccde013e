"""Make the record of ``windtunnel bench`` and its table in docs/bench.md.

python scripts/bench_record.py [NAME...]: of these policies alone, the others as they are recorded.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from windtunnel.board.bench import bench
from windtunnel.board.record import FILE, as_text, board_names, digests_and_bounds, entry, record

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "src" / "windtunnel" / "board" / FILE
PAGE = ROOT / "docs" / "bench.md"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"


def made(names: list[str]) -> dict[str, Any]:
    """Return the record, these policies flown anew."""
    frozen = digests_and_bounds()
    entries = {}
    for name in board_names():
        if names and name not in names:
            entries[name] = record()["policies"][name]
        else:
            entries[name] = entry(name, frozen["digests"])
            print(name, entries[name]["class"], flush=True)
    return {**frozen, "policies": entries}


def with_table(page: str) -> str:
    """Return the page with the table of the record."""
    head, rest = page.split(BEGIN)
    from windtunnel.report.board_result import markdown

    return head + BEGIN + "\n" + markdown(bench()) + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    RECORD.write_text(as_text(made(sys.argv[1:])), encoding="utf-8")
    record.cache_clear()
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
