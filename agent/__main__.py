"""``python -m agent`` is the command ``quoth``.

Python puts the present folder first on its path then; ours goes before it, so that a ``tools`` of the
person's own is not taken for ours.
"""

import os
import sys

from quoth.agent import entry  # first: from here on Ctrl-C ends it quietly

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120  pathlib is slow

sys.exit(entry.main())
