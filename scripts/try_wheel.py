"""Install the wheel of ``dist`` in an empty environment, and fly there.

The environment is outside the checkout; there is no home in which anything could be kept, and what
is installed must be the same afterwards: nothing is compiled at first use.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVE = """
from windtunnel import serving
profile = serving.synthetic_profile()
models = ["medium"] * 4
slo = serving.slos(models, profile, 5.0)
requests = serving.generate(models, duration=100.0, rate=5.0, cv=4.0, slo=slo)
groups = serving.as_placement([{"parallel": [1, 1, 8], "models": [0, 1, 2, 3]}])
print(serving.simulate(groups, requests, profile).metrics())
"""


def main(wheel: Path) -> None:
    """Install and try one wheel."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        binaries = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        python = str(binaries / "python")
        known = folder / "known.txt"
        known.write_text(_versions(ROOT / "requirements.lock"))
        run([python, "-m", "pip", "install", "--quiet", "--constraint", str(known), str(wheel)])
        before = _files(folder / "venv")
        alone = {"HOME": os.devnull, "PATH": str(binaries), "PYTHONDONTWRITEBYTECODE": "1"}
        words = ["simulate", "synthetic:kalos:jobs=1000", "--policy", "srtf"]
        run([str(binaries / "windtunnel"), *words], cwd=folder, env=alone)
        run([python, "-c", SERVE], cwd=folder, env=alone)
        written = set(_files(folder / "venv").items()) - set(before.items())
        if written:
            sys.exit(f"the flight wrote into the installation: {sorted(written)}")
    print(f"{wheel.name} flies.")


def run(command: list[str], **more: object) -> None:
    """Run a command; its failure ends all."""
    subprocess.run(command, check=True, **more)  # type: ignore[call-overload]  # noqa: S603 - fixed words


def _versions(lock: Path) -> str:
    """Return the versions of a lock without its hashes, for a package that has none."""
    lines = lock.read_text().splitlines()
    return "".join(line.removesuffix(" \\") + "\n" for line in lines if "--hash" not in line)


def _files(folder: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for path in folder.rglob("*") if path.is_file()}


if __name__ == "__main__":
    main(next(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").glob("*.whl")).resolve())
