"""OpenSM plugin that provides ibnue's routing engines to a running OpenSM."""
