"""Regression runs (sweeps) of engines x fabrics x faults x seeds in many processes.

Results are stored in a ledger, a file that stays valid even if the run is killed.
"""
