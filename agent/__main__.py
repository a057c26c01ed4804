"""``python -m agent`` is the command ``quoth``."""

import sys

from agent.cli import main

sys.exit(main())
