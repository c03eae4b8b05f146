"""The encoder: a block that mixes positions, its heads, and what it knows of order."""
