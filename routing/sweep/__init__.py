"""Run engines on all combinations of fabrics, faults and seeds in many processes (sweeps), to find regressions.

Results are stored in a ledger, a file that stays valid even if the run is killed.
"""
