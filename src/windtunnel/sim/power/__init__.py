"""Policies of power on the reference engine: caps, shifted starts, sleeping nodes."""
