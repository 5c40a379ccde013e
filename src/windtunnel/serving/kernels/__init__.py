"""The serving simulators' loops, compiled into one unit; loaded by `windtunnel.serving.compiled`.

Cython in its pure-Python mode, as `windtunnel.kernel`; ``build_kernel.py`` joins the
files.
"""
