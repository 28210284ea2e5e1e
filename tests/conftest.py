from importlib.metadata import entry_points

# In a clone that is not installed, the plugin has no entry point to be found by.
_INSTALLED = any(entry.name == "ibnue_lab" for entry in entry_points(group="pytest11"))
pytest_plugins = [] if _INSTALLED else ["ibsim_fixtures.pytest_plugin"]
