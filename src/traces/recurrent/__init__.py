"""Recurrent layers, simple and gated, and how gradients travel through time."""
