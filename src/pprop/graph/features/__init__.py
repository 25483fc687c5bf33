"""Columns as features: a recipe that one can see, encoders, scaling, and features of the structure alone."""
