"""The extension modules of windtunnel; all else about the package stands in pyproject.toml."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))

import build_kernel

#: One of `build_kernel.VARIANTS`; or "none", where `build_ext --inplace` compiles by itself.
VARIANT = os.environ.get("WINDTUNNEL_BUILD", "fast")
UNITS = {} if VARIANT == "none" else build_kernel.UNITS


class BuildKernel(build_ext):
    """Joins the modules, has Cython translate the units that changed, and compiles those."""

    def build_extensions(self) -> None:
        """Build all."""
        from Cython.Build import cythonize

        flags = build_kernel.FLAGS["msvc" if self.compiler.compiler_type == "msvc" else "unix"]
        if self.compiler.compiler_type != "msvc":
            flags = [*flags, *build_kernel.DEBUG[VARIANT]]
        headers = build_kernel.header_folders()
        files = build_kernel.write_joined(Path("build", "kernel"), VARIANT)
        for extension in self.extensions:
            unit = Extension(extension.name, [files[extension.name].as_posix()])
            (translated,) = cythonize([unit], include_path=["src"], quiet=True)
            extension.sources = translated.sources
            extension.include_dirs = headers
            extension.extra_compile_args = flags
            extension.extra_link_args = build_kernel.SANITIZE if VARIANT == "sanitized" else []
        self.parallel = True
        super().build_extensions()

    def run(self) -> None:
        """Choose the compiler first."""
        build_kernel.set_compiler()
        super().run()


setup(
    ext_modules=[
        Extension(
            f"{package}.{build_kernel.VARIANTS[VARIANT]}",
            [],
            py_limited_api=build_kernel.IS_STABLE,
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if build_kernel.IS_STABLE else [],
        )
        for package in UNITS
    ],
    cmdclass={"build_ext": BuildKernel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if build_kernel.IS_STABLE else {},
)
