"""Slurm's scheduler on the kernel: a site and jobs as its tables, reasons, priorities."""
