"""A policy of one's own beside two known ones: does a limit to waiting cost much?

Run it with ``python examples/own_policy.py [PAGE.html]``; it writes a page that opens offline.
"""

from __future__ import annotations

import sys
from pathlib import Path

import windtunnel as wt
from windtunnel.report import comparison_page

PATIENCE = 6 * 3600.0  # s


@wt.policy("patient-sjf", queueing="skip", every=600.0)
def key(job: wt.JobView, now: float) -> float:
    """Shortest first; who has waited for six hours goes before everybody, longest waiting first."""
    waited = now - job.submit_time
    return -waited if waited >= PATIENCE else job.duration


def main(page: str) -> None:
    """Fly a made-up month of the Kalos cluster three times, and compare."""
    trace = wt.open_trace("synthetic:kalos:jobs=3000:load=0.9")
    runs = wt.compare(
        trace.jobs,
        trace.cluster,
        ["fifo", "sjf", "patient-sjf"],
        queueing="skip",
        incomplete="reject",
    )
    for row in runs.table.select(["policy", "avg_wait", "max_wait"]).to_pylist():
        mean, longest = row["avg_wait"] / 60, row["max_wait"] / 3600
        print(f"{row['policy']}: mean wait {mean:.1f} min, longest {longest:.1f} h")
    text = comparison_page(
        runs.outcomes, trace=trace, command="python examples/own_policy.py", title="Patience"
    )
    Path(page).parent.mkdir(parents=True, exist_ok=True)
    Path(page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build/own_policy.html")
