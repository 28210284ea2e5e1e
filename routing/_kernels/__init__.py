"""C kernels and their thin wrappers: arrays in, arrays out.

``csrc/<kernel>.c`` with ``csrc/<kernel>.h`` is one kernel, ``<kernel>.py`` its wrapper.  The headers are the cffi
declarations as well (:mod:`routing._kernels.build`), so that nothing is declared twice.  Wrappers check shapes and
types; behind them the kernels check nothing.
"""
