"""Tree fabrics: levels and an order of their switches, and two computations of tables: in closed form, and by
descent.
"""
