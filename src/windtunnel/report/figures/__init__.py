"""Figures of traces: the AcmeTrace set and the PAI set, for any traces. Importing costs nothing.

A figure is two pure functions: traces -> one tidy table, and that table -> chart; so the CSV beside
a picture is what the picture shows.
"""
