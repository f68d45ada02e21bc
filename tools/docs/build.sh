#!/bin/sh
# build.sh [--output FOLDER]
#
# Builds the documentation site into build/docs. The site contains the pages of docs/, the Python
# reference from the docstrings, the C++ and C headers, and the command's --help. The build fails if
# the target of a link does not exist. Needs Doxygen (Debian: doxygen) and a built tree
# (tools/build.sh).
set -eu
cd "$(dirname "$0")/../.."

output=build/docs
case ${1:-} in
  --output) output=${2:?docs: --output wants a folder} ;;
  ?*) echo "docs: unknown argument $1; usage: tools/docs/build.sh [--output FOLDER]" >&2; exit 2 ;;
esac
command -v doxygen >/dev/null || { echo "docs: no doxygen here (apt: doxygen)" >&2; exit 1; }
python=build/release/python
if [ ! -x build/release/bin/hocket ] || ! ls "$python"/hocket/_hocket.*so >/dev/null 2>&1; then
  tools/build.sh hocket_command _hocket
fi

# Sphinx and its extensions have a Python environment of their own. The Python of .venv makes it,
# because Sphinx imports the package, which is built for this Python.
tools=build/docs-tools
if ! cmp -s tools/docs/requirements.txt "$tools/requirements.txt"; then
  echo "docs: installing Sphinx into $tools"
  rm -rf "$tools"
  .venv/bin/python -m venv "$tools"
  "$tools/bin/python" -m pip install -q --disable-pip-version-check -r tools/docs/requirements.txt
  cp tools/docs/requirements.txt "$tools/requirements.txt"
fi

work=build/docs-work
mkdir -p "$work/xml"
echo "docs: reading the headers"
doxygen - <<END
PROJECT_NAME = hocket
INPUT = include/hocket
FILE_PATTERNS = *.h
FILTER_PATTERNS = *=tools/docs/doxygen_filter.py
OUTPUT_DIRECTORY = $work
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
STRIP_FROM_PATH = include
EXTRACT_ALL = YES
AUTOLINK_SUPPORT = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
EXCLUDE_SYMBOLS = hocket::detail hocket::call hocket::comm hocket::cuda hocket::symmetric hocket::pool hocket::DTypeOf*
MACRO_EXPANSION = YES
PREDEFINED = __cplusplus=202002L
END

# make_source.py calls `hocket demo --help`, which needs a python3 that finds the package.
PATH="$PWD/.venv/bin:$PATH" PYTHONPATH="$python" \
  .venv/bin/python tools/docs/make_source.py "$work/source" build/release/bin/hocket
cp tools/docs/conf.py "$work/source"
HOCKET_VERSION=$(build/release/bin/hocket version)
HOCKET_VERSION=${HOCKET_VERSION#hocket }
HOCKET_DOXYGEN_XML=$PWD/$work/xml
export HOCKET_VERSION HOCKET_DOXYGEN_XML
PYTHONPATH="$python" "$tools/bin/python" -m sphinx -q -W --keep-going -b html -d "$work/doctrees" \
  "$work/source" "$output"
echo "docs: $output/index.html"
