"""Channel dependency graph (CDG): its trace from tables, its topological order, its cycles, and its certificate."""
