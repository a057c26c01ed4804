"""``python -m quoth`` runs the command ``quoth``."""

import sys

from quoth.agent import entry  # first: from here on Ctrl-C ends it quietly

sys.exit(entry.main())
