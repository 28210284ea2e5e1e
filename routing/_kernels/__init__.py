"""C kernels and their thin wrappers: arrays in, arrays out.

Each folder of ``csrc/`` is a subject: ``core`` (incremental topological order, sorting, threads), ``cdg``, ``trees``,
``nue``, ``layering``, ``disjoint``, ``transition``, ``repair`` and ``simulate``.  The headers in such a folder declare
the functions that Python calls, and each of these headers has a wrapper module in this package.  Headers in
``internal/`` are used by C files only.  The public headers are the cffi declarations as well
(:mod:`routing._kernels.build`), so that nothing is declared twice.  Wrappers check shapes and types; the kernels check
nothing.
"""
