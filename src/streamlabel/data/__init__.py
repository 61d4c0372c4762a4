"""Files to matrices: readers, writers, catalogue, synthetic sets, label streams."""
