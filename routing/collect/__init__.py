"""Collect the topology, the tables, the SLs and the counters of a live fabric, without changing the fabric."""
