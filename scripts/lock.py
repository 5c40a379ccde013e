"""Write requirements.lock: every package windtunnel, its tests and its linters need, with hashes.

The file holds no URLs and no index, so that it installs from whichever mirror pip is set up with.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [
    "uv", "pip", "compile", "pyproject.toml", "scripts/build.in", "--extra", "test",
    "--extra", "lint", "--universal", "--python-version", "3.11", "--generate-hashes",
    "--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "--no-header", "--upgrade",
    "--output-file", "requirements.lock",
]  # fmt: skip

if __name__ == "__main__":
    subprocess.run([sys.executable, "-m", *COMMAND], cwd=ROOT, check=True)  # noqa: S603 - fixed words
    text = (ROOT / "requirements.lock").read_text()
    if "://" in text:
        sys.exit("requirements.lock names a URL; resolve it from an index instead")
