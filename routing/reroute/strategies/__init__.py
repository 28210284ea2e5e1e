"""Strategies of a re-route.  Each strategy takes the data of the fault and a budget of limits, and returns proven
tables or a refusal.
"""
