"""Tagging of texts: a tagger that learns labels from answers, and says why."""
