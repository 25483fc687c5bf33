"""Statistics of runs: metrics, means with intervals, paired tests, variance components, and bounds for repeated runs."""
