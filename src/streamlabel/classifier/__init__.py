"""Step 2: learn the new classifier, pulled toward the anchor."""
