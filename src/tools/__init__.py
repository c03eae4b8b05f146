"""Tools over the records of traces, made here or elsewhere."""
