"""Build the kernels: join their modules into units of Cython, and find a compiler for those.

The modules of a kernel are small for people; the compiler sees one file, so that calls from module
to module cost nothing. Imports between them fall away, and ``@compiled`` becomes what Cython wants
of a C function that needs no interpreter and raises nothing. ``setup.py`` calls what stands here;
run as a program, this file says whether the machine has what a build needs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

SOURCES = Path(__file__).parent / "src" / "windtunnel"
#: The folders of modules, by the package that gets the compiled unit.
UNITS = {
    "windtunnel.kernel": SOURCES / "kernel",
    "windtunnel.serving": SOURCES / "serving" / "kernels",
}
#: The compiled units' names, by how they are built; `windtunnel.kernel.loading` chooses.
VARIANTS = {"fast": "_kernel", "checked": "_checked", "sanitized": "_sanitized"}
#: The stable interface of Python 3.11 serves all later versions, but those without the lock.
IS_STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
#: No fused multiply-add, ever: the engines agree bit for bit. Nor anything of this processor alone.
#: -O3 is slower than -O2 (serving: 37 M requests/s against 55 M) and larger.
FLAGS = {
    "unix": ["-O2", "-g0", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unused-function"],
    "msvc": ["/O2", "/fp:precise"],
}
SANITIZE = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
#: Further ones, by variant: a sanitized kernel takes gcc five times as long with -O2.
DEBUG = {"fast": [], "checked": ["-Og"], "sanitized": [*SANITIZE, "-Og", "-g1"]}

DIRECTIVES = {
    "language_level": "3",
    "boundscheck": "False",
    "wraparound": "False",
    "initializedcheck": "False",
    "cdivision": "True",
    "infer_types": "True",
    "auto_pickle": "False",
    "binding": "False",  # methods as C has them: policies in Python call some at every job
    "show_performance_hints": "False",
}
CHECKS = {"boundscheck": "True", "initializedcheck": "True"}
#: What the interpreter needs of a folder of kernels, and its unit does not.
LEFT_OUT = {"__init__", "loading", "marks", "plain_bits", "plain_clock"}
DECORATORS = "@cython.cfunc\n{0}@cython.nogil\n"
#: Unchecked functions raise nothing; checked ones may fail anywhere, and say so.
SILENT = "{0}@cython.exceptval(check=False)\n"
_DOCSTRING = re.compile(r'\A""".*?"""\n', re.DOTALL)
_IMPORTS = re.compile(
    r"^(from __future__|import cython|import numpy|from windtunnel\.(kernel|serving\.kernels))"
    r"[^\n(]*(\([^)]*\))?\n",
    re.MULTILINE,
)
_NEEDED = re.compile(r"^from windtunnel\.(?:kernel|serving\.kernels)\.(\w+) import", re.MULTILINE)
_COMPILED = re.compile(r"^( *)@compiled\n", re.MULTILINE)


def modules_in_order(package: str) -> list[str]:
    """Return a package's modules, each after those that it imports from.

    Raises:
        graphlib.CycleError: they import in a circle.
    """
    texts = {
        file.stem: file.read_text(encoding="utf-8")
        for file in sorted(UNITS[package].glob("*.py"))
        if file.stem not in LEFT_OUT
    }
    needed = {name: set(_NEEDED.findall(text)) & texts.keys() for name, text in texts.items()}
    return list(TopologicalSorter(needed).static_order())


def joined(package: str, *, checked: bool = False) -> str:
    """Return the whole unit of a package.

    Args:
        package: one of `UNITS`.
        checked: with bounds checks that raise, for the debug build.
    """
    folder = UNITS[package]
    decorators = DECORATORS if checked else DECORATORS + SILENT
    directives = {**DIRECTIVES, **(CHECKS if checked else {})}
    lines = [f"# cython: {name}={value}\n" for name, value in directives.items()]
    # Without the first, C integers divide as in C, whatever the language level says.
    lines.append("from __future__ import division\nimport cython\nimport numpy\n")
    for name in modules_in_order(package):
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        text = _IMPORTS.sub("", _DOCSTRING.sub("", text))
        text = _COMPILED.sub(lambda found: found[1] + decorators.format(found[1]), text)
        lines.append(f"\n# {name}.py\n{text}")
    return "".join(lines)


def write_joined(folder: Path, variant: str = "fast") -> dict[str, Path]:
    """Write the units; files that would not change keep their time stamps.

    Returns:
        The files, by the full names of the extension modules.
    """
    files = {}
    for package in UNITS:
        name = f"{package}.{VARIANTS[variant]}"
        file = folder.joinpath(*name.split(".")).with_suffix(".py")
        text = joined(package, checked=variant == "checked")
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        files[name] = file
    return files


def found_compiler() -> list[str] | None:
    """Return the command of a C compiler that works, or None: ``$CC``, Python's own, or ``cc``."""
    own = sysconfig.get_config_var("CC") or ""
    wanted = [os.environ["CC"]] if os.environ.get("CC") else [own, "cc", "gcc", "clang"]
    commands = [shlex.split(name) for name in wanted if name]
    return next((command for command in commands if _compiles(command)), None)


def _compiles(command: list[str]) -> bool:
    """Return whether a compiler is there and makes a library: some are stubs, or lack headers."""
    if shutil.which(command[0]) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <stdlib.h>\nint probe(void) { return abs(-1); }\n")
        words = [*command, "-shared", "-fPIC", str(source), "-o", str(Path(folder, "probe.so"))]
        made = subprocess.run(words, capture_output=True, check=False)  # noqa: S603 - our own words
        return made.returncode == 0


def set_compiler() -> None:
    """Set ``CC`` (and what goes with it) to a compiler that works, ziglang's where there is none.

    Raises:
        SystemExit: there is neither.
    """
    if os.name == "nt":
        return  # setuptools looks for Visual C++ itself
    found = found_compiler()
    if found is None and find_spec("ziglang") is None:
        sys.exit(
            "windtunnel's kernels are compiled when it is installed. That takes a C compiler (cc, "
            "or what $CC names) or the package ziglang; neither is here."
        )
    if found is None:
        zig = [sys.executable, "-m", "ziglang"]
        found = [*zig, "cc", "-mcpu=baseline"]  # by itself it compiles for this very processor
        os.environ["AR"] = shlex.join([*zig, "ar"])
        os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(Path("build", "zig").absolute()))
    elif found == shlex.split(sysconfig.get_config_var("CC") or ""):
        return
    os.environ["CC"] = shlex.join(found)
    if sys.platform != "darwin":
        os.environ["LDSHARED"] = shlex.join([*found, "-shared"])


def header_folders() -> list[str]:
    """Return where Python's C header files are, if not where the compiler looks for them.

    Raises:
        SystemExit: they are missing, and those in ``third_party`` do not suit this Python.
    """
    folder = sysconfig.get_paths()["include"]
    if Path(folder, "Python.h").exists():
        return []
    if IS_STABLE and sys.platform == "linux" and sys.maxsize == 2**63 - 1:
        return ["third_party/python"]
    return sys.exit(
        f"windtunnel's kernels are compiled when it is installed, which takes Python's header "
        f"files; {folder} has none. Install what your system calls python3-dev or python3-devel."
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["headers"]:
        header_folders()
    else:
        compiler = found_compiler()
        print(shlex.join(compiler) if compiler else "none")  # noqa: T201 - the answer
        sys.exit(compiler is None)
