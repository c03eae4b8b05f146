"""Parts of a feed-forward network and its loss: projections, gates, operations."""
