"""Reports: charts, tables and pages, each a function of outcomes. Importing this costs nothing."""
