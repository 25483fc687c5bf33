"""Labels as people write them."""

from __future__ import annotations

# Texts that stand for an unknown label.
MISSING_LABELS = ("", "NA", "nan", "None", "?", "-1")
