"""Slurm's scheduler as a policy: its two loops, by a site's own files."""
