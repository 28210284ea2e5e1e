"""Credit loops: proofs that tables have none, descriptions of loops, safe transitions between tables, and diagnosis at
run time.
"""
