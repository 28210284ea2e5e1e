"""Credit loops: proof of tables, witness of a loop, transitions between tables, diagnosis at run time."""
