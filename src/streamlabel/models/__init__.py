"""Estimators: state, the streaming classifier, baselines."""
