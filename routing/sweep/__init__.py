"""Regression runs of engines x fabrics x faults x seeds over many processes, with a ledger that survives a kill."""
