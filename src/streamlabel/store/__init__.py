"""The growing model on disk."""
