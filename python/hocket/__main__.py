"""``python -m hocket`` is the command ``hocket``."""

from ._command import main

main()
