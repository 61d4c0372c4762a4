"""Measures of multi-label predictions, as pure functions."""
