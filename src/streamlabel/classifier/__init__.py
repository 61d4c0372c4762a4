"""Step 2: learn the new classifier, pulled toward an anchor made of past classifiers."""
