"""Computing stored rows once more."""
