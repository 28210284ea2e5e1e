"""The ``ibnue`` command: the only place that prints."""
