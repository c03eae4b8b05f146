"""Layers, their named parameters and the generator that initialises them."""
