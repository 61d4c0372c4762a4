"""The same solves on PyTorch. The only door to torch."""
