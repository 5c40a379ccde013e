"""Write ``third_party/python/Python.h``: the stable C interface of Python 3.11, in one file.

Systems that package Python often leave its header files out, and nothing on the package index has
them. A build without them takes this file. It is what Python 3.11's own headers come to under the
limited interface on 64-bit Linux; run this with a Python 3.11 that has its headers, and gcc.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "third_party" / "python"
STABLE = "0x030B0000"
SYSTEM = (
    *("assert", "ctype", "errno", "inttypes", "limits", "math", "stdarg", "stddef", "stdio"),
    *("stdlib", "string", "sys/stat", "sys/time", "time", "unistd", "wchar"),
)
#: Header files that Cython includes besides; all that they hold is in Python.h here.
OTHERS = ("structmember", "pythread", "traceback", "compile", "frameobject")
NOTICE = f"""\
/* The stable C interface of Python {sys.version.split()[0]} (Py_LIMITED_API {STABLE}) on 64-bit
   Linux, made from its header files by scripts/python_headers.py.
   Copyright (c) 2001-2023 Python Software Foundation; All Rights Reserved.
   Licence: LICENSE, beside this file. */
"""
#: What the build of Python found on its machine, which no extension asks for.
_FOUND = re.compile(r"#define (_?HAVE_|WITH_|ENABLE_|PY_BUILTIN_|PLATLIBDIR|_DARWIN|__EXT)")


def main() -> None:
    """Write the files."""
    folder = sysconfig.get_paths()["include"]
    words = ["gcc", "-E", "-dD", "-DNDEBUG", f"-DPy_LIMITED_API={STABLE}", "-I", folder, "-"]
    asked = "".join(f"#include <{name}.h>\n" for name in ("Python", *OTHERS))
    made = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)  # noqa: S603 - fixed words
    kept, is_pythons = [], False
    for line in made.stdout.splitlines():
        if mark := re.match(r'# \d+ "([^"]+)"', line):
            is_pythons = mark[1].startswith(folder)
        elif is_pythons and line.strip() and not _FOUND.match(line):
            kept.append(line)
    TARGET.mkdir(parents=True, exist_ok=True)
    system = [f"#include <{name}.h>" for name in SYSTEM]
    lines = [NOTICE, "#ifndef Py_PYTHON_H", *system, *kept, "#endif"]
    (TARGET / "Python.h").write_text("\n".join(lines) + "\n")
    for name in OTHERS:
        (TARGET / f"{name}.h").write_text("#include <Python.h>\n")


if __name__ == "__main__":
    main()
