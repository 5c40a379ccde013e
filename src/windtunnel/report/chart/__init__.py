"""The vocabulary of charts: lines, steps, bars, boxes, heat, gantt and forest, of plain rows.

Whoever draws names columns (`axes.Axis`), what tells the series apart (`series.Series`) and one of
`marks`; `arrange` puts charts into facets, beside and over each other and gives them their look.
Nothing outside this package speaks Altair; it is imported where a chart is drawn.
"""
