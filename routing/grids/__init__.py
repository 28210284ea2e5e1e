"""Coordinates of meshes, tori, HyperX and hypercubes, and dimension-ordered paths over these coordinates."""
