"""The paper's tables and figures, and ours: grid -> records -> tables and pictures."""
