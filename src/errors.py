"""The root of all errors that are a user's mistake. Imports nothing."""


class LlmTraceError(Exception):
    """Anything that is a user's mistake rather than a defect of this program: one line."""
