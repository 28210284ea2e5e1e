"""C functions (kernels) that compute with arrays, and Python functions (wrappers) that call them.

Each folder of ``csrc/`` has one subject: ``core`` (incremental topological order, sorting, threads), ``cdg``,
``trees``, ``nue``, ``layering``, ``disjoint``, ``transition``, ``repair`` and ``simulate``.  The headers in such a
folder declare the functions that Python calls.  The modules of this package are the wrappers of these functions.
Headers in ``internal/`` are used by C files only.  The build passes all other headers to cffi as declarations
(:mod:`routing._kernels.build`), so that no function is declared twice.  Wrappers check shapes and types; the kernels
check nothing.
"""
