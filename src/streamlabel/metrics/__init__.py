"""Measures of multi-label predictions, as pure functions.

``ranking`` ranks the labels of a row, ``auc`` the rows of a label or all cells, ``decisions`` judges 0/1 predictions,
``evaluate`` does many at once. ``blocks`` says which forms of scores they all read, and how scores that do not fit in
memory come in parts. Each docstring states ties, empty rows, one-class labels and divisors.
"""
