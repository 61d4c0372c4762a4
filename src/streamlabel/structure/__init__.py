"""Step 1: write a new label as a sparse combination of the labels already known."""
