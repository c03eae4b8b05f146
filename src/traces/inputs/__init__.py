"""How words and images become the rows that a model reads."""
