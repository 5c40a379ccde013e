"""A study in Python: does going on past a job that does not fit pay, and for whom?

Run it with ``python examples/two_queues.py [FOLDER]``; a second time it has nothing left to fly.
"""

from __future__ import annotations

import sys

from windtunnel.study.grid import Study, run_study
from windtunnel.study.grid.paired import compare_results


def main(folder: str) -> None:
    """Fly the study into a folder, and print what is better for whom."""
    study = Study.from_mapping(
        {
            "name": "two queues",
            "traces": [{"trace": "synthetic:kalos:jobs=300", "name": "kalos"}],
            "clusters": ["16x8"],
            "policies": ["fifo"],
            "queueing": ["strict", "skip"],
            "loads": [0.8],
            "seeds": 8,
            "options": {"oversize": "reject", "incomplete": "reject"},
        }
    )
    results = run_study(study, folder)
    found = compare_results(
        results, metrics=("avg_wait", "big_p99_wait"), between="queueing", baseline="strict"
    )
    for contrast in found.contrasts:
        change = contrast.change
        ends = "no interval" if change.low is None else f"{change.low:+.0%} to {change.high:+.0%}"
        claim = f"{contrast.metric}: {contrast.value} against {contrast.baseline}"
        print(f"{claim}: {change.estimate:+.0%} ({ends}): {contrast.verdict}")


if __name__ == "__main__":  # workers import this file, too
    main(sys.argv[1] if len(sys.argv) > 1 else "build/two_queues")
