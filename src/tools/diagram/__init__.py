"""A trace drawn as the graph of its computation."""
