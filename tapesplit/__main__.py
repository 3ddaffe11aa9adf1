"""``python -m tapesplit`` is the command ``tapesplit``."""

import sys

from tapesplit.cli import main

sys.exit(main())
