"""Pollux's published simulator: its clock, and the rivals that it flies with."""
