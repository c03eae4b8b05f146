"""From texts to batches of tokens, and what can be counted without a network."""
