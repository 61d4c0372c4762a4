"""Methods to compare with: one classifier a label, LEML, SLEEC."""
