"""Kernels for runs in which an instant has more to it: disruptions, or one event at a time.

They are apart from the kernels of plain runs, which stay as fast and as quick to compile as they
are. One module brings a run to its next decision (`instants`), one a family of orders decides.
"""
