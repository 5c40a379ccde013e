# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The lab's page, a marimo notebook: controls on top, what they make of the trace below.

Served by `windtunnel.lab.server`; each cell runs again when a control that it reads moves.
"""

import marimo

app = marimo.App(width="medium", app_title="windtunnel lab")


@app.cell(hide_code=True)
def opened():
    import marimo as mo

    from windtunnel.lab import bench as benches
    from windtunnel.lab import drawing, export
    from windtunnel.lab import setup as setups

    bench = benches.current()
    first = bench.first
    return bench, drawing, export, first, mo, setups


@app.cell(hide_code=True)
def title(bench, drawing, mo):
    mo.Html(drawing.heading(bench.trace))
    return


@app.cell(hide_code=True)
def controls(bench, first, mo, setups):
    nodes = mo.ui.number(start=1, stop=100_000, step=1, value=first.nodes, label="Nodes")
    gpus = mo.ui.number(start=1, stop=62, step=1, value=first.gpus_per_node, label="GPUs a node")
    kind = mo.ui.dropdown(bench.gpu_types(), value=first.gpu_type, label="GPU type")
    load = mo.ui.slider(
        start=0.1,
        stop=3.0,
        step=0.05,
        value=first.load,
        debounce=True,
        include_input=True,
        label="Load, times the trace's",
    )
    policies = setups.fast_policies()
    one = mo.ui.dropdown(policies, value=first.policies[0], label="Policy")
    two = mo.ui.dropdown(policies, value=first.policies[1], label="against")
    queueing = mo.ui.dropdown(setups.queueing_rules(), value=first.queueing, label="Queueing")
    placement = mo.ui.dropdown(setups.placements(), value=first.placement, label="Placement")
    sharing = mo.ui.dropdown(setups.sharing_rules(), value=first.sharing, label="GPU sharing")
    return gpus, kind, load, nodes, one, placement, queueing, sharing, two


@app.cell(hide_code=True)
def panel(gpus, kind, load, mo, nodes, one, placement, queueing, sharing, two):
    rows = ([one, two, queueing, placement], [nodes, gpus, kind, sharing], [load])
    mo.vstack(
        [mo.hstack(row, justify="start", align="end", wrap=True, gap=1.25) for row in rows],
        gap=1,
    )
    return


@app.cell(hide_code=True)
def chosen(gpus, kind, load, nodes, one, placement, queueing, setups, sharing, two):
    setup = setups.Setup(
        nodes=int(nodes.value or 1),
        gpus_per_node=int(gpus.value or 1),
        gpu_type=kind.value,
        load=float(load.value),
        policies=(one.value, two.value),
        queueing=queueing.value,
        placement=placement.value,
        sharing=sharing.value,
    )
    return (setup,)


@app.cell(hide_code=True)
def result(bench, drawing, mo, setup):
    mo.Html(drawing.flown(bench, setup))
    return


@app.cell(hide_code=True)
def keep(bench, export, mo, setup):
    mo.hstack(
        [
            mo.download(
                data=lambda: export.study_toml(bench, setup).encode(),
                filename="STUDY.toml",
                mimetype="text/plain",
                label="Keep as STUDY.toml",
            ),
            mo.download(
                data=lambda: export.page(bench, setup).encode(),
                filename="lab.html",
                mimetype="text/html",
                label="Keep as a page",
            ),
        ],
        justify="start",
        wrap=True,
    )
    return


if __name__ == "__main__":
    app.run()
