"""``python -m hocket`` runs the command ``hocket``.

With ``--cmake-dir``, ``--include-dir`` or ``--pkg-config-dir`` it prints the folder of this
package that CMake, a compiler or pkg-config needs.
"""

import sys

from ._command import FOLDERS, find_folder, main

if len(sys.argv) == 2 and sys.argv[1] in FOLDERS:
    print(find_folder(sys.argv[1]))
else:
    main()
