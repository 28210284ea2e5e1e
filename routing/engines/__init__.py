"""The routing engines, by name."""
