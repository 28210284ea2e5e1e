"""Tree fabrics: the levels and an order of their switches, tables in closed form, and tables by descent."""
