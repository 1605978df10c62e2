"""The streaming guard engine: what may leave, and when (spec R0)."""
