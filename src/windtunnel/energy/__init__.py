"""Energy and time of recurring training: batch sizes and power limits (Zeus, NSDI'23)."""
