"""``python -m quoth`` runs the command ``quoth``. Python puts the current folder first on ``sys.path``,
where a workspace may have a ``regex.py`` of its own; it is removed before anything else is imported."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]

from quoth.agent import entry  # first: from here on Ctrl-C ends it quietly

sys.exit(entry.main())
