"""Observers: what a run did to whom, as pure functions from an outcome to tables and numbers."""
