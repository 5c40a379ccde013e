"""Shockwave's market of rounds, and the policies on one GPU type that it is compared with."""
