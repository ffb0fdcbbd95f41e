"""Lets tests of one folder share its helper modules."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
