"""Placement search: its policies, and what they are made of."""
