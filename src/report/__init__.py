"""What a trace is made of: records, the styles in which they print, and the writers."""
