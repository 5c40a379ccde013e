"""A private twin of a trace: learn its statistics, share them, generate jobs from them."""
