"""The two theorems of the paper, computed for a fitted model: what they promise, and what must be added to them."""
