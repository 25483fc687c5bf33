"""Predict, then propagate."""
