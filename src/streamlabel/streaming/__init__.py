"""The estimator: past labels, arrivals, trials of how far the past helps, decisions, and what a model keeps."""
