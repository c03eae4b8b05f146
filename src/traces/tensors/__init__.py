"""Tensors: where their elements lie, how shapes meet, and products of matrices."""
