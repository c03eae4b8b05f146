"""Decoders: blocks of causal attention and gated layers, and the models that are made of them."""
