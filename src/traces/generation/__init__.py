"""Generating text: one token after another, with what was worked out before kept at hand."""
