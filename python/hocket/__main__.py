"""``python -m hocket`` is the command ``hocket``; of itself it says where, in the package, CMake
(``--cmake-dir``), a compiler (``--include-dir``) and pkg-config (``--pkg-config-dir``) find the
library."""

import sys

from ._command import FOLDERS, find_folder, main

if len(sys.argv) == 2 and sys.argv[1] in FOLDERS:
    print(find_folder(sys.argv[1]))
else:
    main()
