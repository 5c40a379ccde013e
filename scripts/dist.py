"""Make the source archive, and the wheel from what is in it, in ``dist``.

Neither needs the network: what builds them is in ``requirements.lock``.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
#: What a front end such as pip runs in the unpacked archive (PEP 517).
BUILD = "import sys, build_backend as back; print(getattr(back, sys.argv[1])(sys.argv[2]))"


def built(kind: str, folder: Path) -> Path:
    """Return the archive of a kind, ``sdist`` or ``wheel``, built from a folder into ``dist``."""
    command = [sys.executable, "-c", BUILD, f"build_{kind}", str(DIST)]
    ran = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - fixed words
    return DIST / ran.stdout.split()[-1]


if __name__ == "__main__":
    DIST.mkdir(exist_ok=True)
    for old in (*DIST.glob("*.tar.gz"), *DIST.glob("*.whl")):
        old.unlink()
    source = built("sdist", ROOT)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
        wheel = built("wheel", Path(folder, source.name.removesuffix(".tar.gz")))
    for made in (source, wheel):
        print(f"{made.relative_to(ROOT)}  {made.stat().st_size / 1e6:.1f} MB")
