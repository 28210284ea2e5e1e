"""What can be said about credit loops: dependency graph, certificate, witness."""
