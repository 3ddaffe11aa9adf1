"""``python -m jcdp_core`` is the command ``jcdp``."""

import sys

from jcdp_core.cli import main

sys.exit(main())
