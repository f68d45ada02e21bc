"""Settings of the documentation site.

The site has hocket's documents, and references made from docstrings, headers and --help.
tools/docs/build.sh makes the sources, puts them into one folder with this file, and runs Sphinx
there.
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
# Suppress three warnings. Breathe declares a namespace once for each header's page, and C's structs
# once more for their typedefs. It also refers to derived classes by labels that it does not define.
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

# Sphinx checks that every internal link has a target. These names have no page: types of other
# libraries, types behind a handle, and the names of argument kinds in Python's signatures.
nitpicky = True
BEHIND_HANDLES = "[a-z][a-z_]*(::.*)?|Secret|Plan|Impl|Fold"  # inner namespaces, and inner classes
nitpick_ignore_regex = [
    ("(cpp|c):.*", "std(::.*)?|CUstream_st|u?int[0-9]+_t|size_t|MPI_Comm|Duration::max"),
    ("cpp:.*", f"(hocket::)?({BEHIND_HANDLES})|Element|DTypeOf.*"),
    ("py:.*", r"(?!hocket\.).*|hocket\._.*|hocket\.cluster\.T"),
]


def drop_signature(app, what, name, obj, options, lines):
    """Delete the signature at the beginning of nanobind's docstrings: autodoc prints it already."""
    short = name.rsplit(".", 1)[-1]
    while lines and re.match(rf"{re.escape(short)}\(.*\)( -> .*)?$", lines[0]):
        del lines[0]


def setup(app):
    app.connect("autodoc-process-docstring", drop_signature)
