"""Methods to compare with: one classifier per label, LEML, SLEEC."""
