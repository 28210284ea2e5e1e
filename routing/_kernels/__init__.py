"""C kernels and their thin wrappers: arrays in, arrays out.

Each folder of ``csrc/`` is a subject: ``core`` (incremental topological order, sorting, threads), ``cdg``, ``trees``,
``nue``, ``layering``, ``transition``, ``repair`` and ``simulate``.  A header in such a folder declares what Python
calls, and one module here is its wrapper.  Headers in ``internal/`` are for C alone.  The public headers are the cffi
declarations as well (:mod:`routing._kernels.build`), so that nothing is declared twice.  Wrappers check shapes and
types; behind them the kernels check nothing.
"""
