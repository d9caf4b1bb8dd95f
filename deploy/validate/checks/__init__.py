"""The checks, one module per subject: pure functions of a context."""
