"""Credit loops: proof that tables have none, description of a loop, transitions between tables, run-time diagnosis."""
