"""Stands before the real package: its worker is taken from here, everything else from there."""

import os

__path__.append(os.environ["IBNUE_TEST_REAL"])
