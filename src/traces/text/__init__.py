"""Texts become tokens, and tokens are counted, windowed and scored."""
