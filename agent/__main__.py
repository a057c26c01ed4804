"""``python -m agent`` is the command ``quoth``.

Python puts the present folder first on its path then; ours goes before it, so that a ``tools`` of the
person's own is not taken for ours.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.cli import main

sys.exit(main())
