"""The site: hocket's documents, and references made from docstrings, headers and --help.

tools/docs/build.sh makes the sources that this finds beside it, and runs Sphinx on them.
"""

import os
import re

project = "hocket"
copyright = "the authors of hocket"
author = ""
version = release = os.environ["HOCKET_VERSION"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "breathe"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = []
root_doc = "index"

html_theme = "furo"
html_title = "hocket"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["hocket.css"]
html_theme_options = {"source_view_link": "", "top_of_page_buttons": []}

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Breathe declares the namespace again on each header's page, and C's structs again as their
# typedefs. It names derived classes by labels that it does not set.
suppress_warnings = ["duplicate_declaration.cpp", "duplicate_declaration.c", "ref.ref"]
highlight_language = "text"

breathe_projects = {"hocket": os.environ["HOCKET_DOXYGEN_XML"]}
breathe_default_project = "hocket"
breathe_show_include = False
breathe_domain_by_file_pattern = {"*/c.h": "c"}
cpp_index_common_prefix = ["hocket::"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_use_ivar = True

# Every internal link is checked. These have no page: other libraries' types, types behind a handle,
# and the names that Python's signatures give to kinds of arguments.
nitpicky = True
BEHIND_HANDLES = "[a-z][a-z_]*(::.*)?|Secret|Plan|Impl|Fold"  # inner namespaces, and inner classes
nitpick_ignore_regex = [
    ("(cpp|c):.*", "std(::.*)?|CUstream_st|u?int[0-9]+_t|size_t|MPI_Comm|Duration::max"),
    ("cpp:.*", f"(hocket::)?({BEHIND_HANDLES})|Element|DTypeOf.*"),
    ("py:.*", r"(?!hocket\.).*|hocket\._.*|hocket\.cluster\.T"),
]


def drop_signature(app, what, name, obj, options, lines):
    """nanobind's docstrings begin with the signature, which autodoc has from there already."""
    short = name.rsplit(".", 1)[-1]
    while lines and re.match(rf"{re.escape(short)}\(.*\)( -> .*)?$", lines[0]):
        del lines[0]


def setup(app):
    app.connect("autodoc-process-docstring", drop_signature)
