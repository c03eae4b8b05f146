"""What the four original programs print on any fixture: their rules, read again apart from src.

Each chapter computes on the scalar port and spells its own lines. Facts that no fixture changes,
such as which misuse is refused, are written as they must be.
"""
