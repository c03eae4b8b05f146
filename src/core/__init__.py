"""What computes: deterministic arithmetic, reverse-mode differentiation, layers. Knows no trace."""
