"""The two bounds of the paper, computed for a fitted model."""
