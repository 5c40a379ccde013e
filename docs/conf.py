"""How `make docs` builds these pages: Sphinx, Markdown, and a reference made from docstrings."""

import windtunnel

project = "windtunnel"
author = "windtunnel's authors"
version = release = windtunnel.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "contents"  # index.md is the page that people read first
html_theme = "furo"  # asks for nothing from the network
html_title = f"windtunnel {version}"
html_show_sourcelink = html_copy_source = False
myst_heading_anchors = 3
# Docstrings are plain text with code in single or double backquotes.
default_role = "code"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
napoleon_google_docstring = True
napoleon_use_ivar = True
napoleon_use_rtype = False
