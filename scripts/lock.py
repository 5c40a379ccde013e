"""Write the locks: every package windtunnel, its tests and its linters need, with hashes.

``requirements.lock`` is what every target installs; ``requirements-spark.lock``, ``-ray.lock``,
``-browser.lock`` and ``-docs.lock`` what ``make test-spark``, ``test-ray``, ``test-browser`` and
``docs`` add to it, at the same versions; ``requirements-compiler.lock`` is for machines without a
C compiler. The files hold no URLs and no index, so that they install from whichever mirror pip is
set up with.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAIN = "requirements.lock"
COMPILE = ["uv", "pip", "compile"]
PROJECT = "pyproject.toml"
OPTIONS = [
    "--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url",
    "--no-emit-find-links", "--no-annotate", "--no-header", "--upgrade",
]  # fmt: skip
WHAT = {
    MAIN: [
        *(PROJECT, "scripts/build.in"),
        *("--extra", "test"),
        *("--extra", "lint"),
        *("--extra", "ml"),
        *("--extra", "bench"),
        *("--extra", "search"),
        *("--extra", "rl"),
    ],
    "requirements-spark.lock": [PROJECT, "--extra", "spark", "--constraint", MAIN],
    "requirements-ray.lock": [PROJECT, "--extra", "ray", "--constraint", MAIN],
    "requirements-docs.lock": [PROJECT, "--extra", "docs", "--constraint", MAIN],
    "requirements-browser.lock": [
        *(PROJECT, "--extra", "lab", "--extra", "browser", "--constraint", MAIN),
        *("--constraint", "requirements-docs.lock"),
    ],
    "requirements-compiler.lock": ["scripts/compiler.in"],
}


def lock(name: str) -> None:
    """Resolve one lock and write it.

    Raises:
        SystemExit: it names a URL.
        subprocess.CalledProcessError: there is no solution; uv has said why.
    """
    command = [*COMPILE, *WHAT[name], *OPTIONS, "--output-file", name]
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)  # noqa: S603 - fixed words
    if "://" in (ROOT / name).read_text():
        sys.exit(f"{name} names a URL; resolve it from an index instead")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or WHAT:
        lock(wanted)
