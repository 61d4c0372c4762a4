"""How the pages are built. Nothing is fetched: theme, fonts and scripts come with the packages of the group docs."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from streamlabel import __version__

project = "streamlabel"
author = "The streamlabel developers"
copyright = author
version = release = __version__

extensions = [
    "command_help",
    "demo_output",
    "estimator_docs",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "stale_pages",
]
exclude_patterns = ["_build", "generated/demo"]
templates_path = ["_templates"]
default_role = "py:obj"
myst_heading_anchors = 3
highlight_language = "none"

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
# Modules of `scale` need these, and the pages none of them.
autodoc_mock_imports = [name for name in ("dask", "distributed", "torch") if find_spec(name) is None]
autodoc_default_options = {"members": True}
autodoc_typehints = "signature"
autodoc_type_aliases = {
    name: name for name in ("ArrayLike", "CSC", "CSR", "FloatArray", "IntArray", "PathLike", "RandomState", "Source")
}
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"streamlabel {version}"
html_static_path = ["_static"]
html_css_files = ["streamlabel.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "use_edit_page_button": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {page.stem: [] for page in Path(__file__).parent.glob("*.md") if page.stem != "api"}
