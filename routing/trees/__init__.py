"""Tree fabrics: the levels of their switches, and tables in closed form."""
