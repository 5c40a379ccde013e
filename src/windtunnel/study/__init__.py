"""Experiments: one run, several runs side by side."""
