"""The lab: a local page on which a trace is flown again whenever a control is moved.

`Bench` holds a trace and flies `Setup`s of it; `windtunnel.lab.drawing` draws what came of one,
`windtunnel.lab.export` writes it as STUDY.toml and as a page, `windtunnel.lab.app` is the page's
notebook and `windtunnel.lab.server` serves it, from this machine to this machine.
"""
