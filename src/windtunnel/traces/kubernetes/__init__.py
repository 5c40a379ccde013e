"""Workloads, jobs and pods of Kubernetes, Kueue and Volcano, as their API prints them."""
