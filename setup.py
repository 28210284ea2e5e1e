"""Build of the C kernels; everything else about the distribution stands in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["routing/_kernels/build.py:ffibuilder"])
