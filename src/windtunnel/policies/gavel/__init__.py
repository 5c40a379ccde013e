"""Gavel's allocation policies: pure functions from an instance to time shares."""
