"""Schedulers of reconfigurable jobs: Morphling, what it is measured against, and its ablations.

Yuan et al., "Morphling: Exploiting Job Reconfigurability for Deep Learning Cluster Scheduling",
MLSys'25 (preprint arXiv 2408.08586, where it is called Rubick).
"""
