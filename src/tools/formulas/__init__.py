"""The formulas that fields declare, evaluated on the numbers of a trace."""
