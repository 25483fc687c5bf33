"""The rows of a study on the disk: one store, packed files, merging, what is left of a damaged store."""
