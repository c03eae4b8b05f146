"""Arrays without derivatives: layout in memory, views, broadcasting and raw probabilities."""
