"""Credit loops: channel dependency graph, certificate of freedom from loops, witness of a loop, safe updates."""
