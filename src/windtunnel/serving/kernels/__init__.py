"""The serving simulators' compiled loops; loaded by `windtunnel.serving.compiled`."""
