"""Computing the missing runs of a study."""
