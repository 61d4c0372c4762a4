"""Texts and label names: a tagger that learns from answers, and says why."""
