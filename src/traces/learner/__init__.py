"""The learner reports: one module a trace, under the trace's own name."""
