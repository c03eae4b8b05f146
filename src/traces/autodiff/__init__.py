"""Derivatives: checked by differences, worked out on single numbers and on tensors."""
