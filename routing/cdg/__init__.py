"""Channel dependency graph (CDG): trace from tables, acyclic CDG with its topological order, cycles, certificate."""
