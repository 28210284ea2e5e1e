"""Files of the fixture fabrics: net files, pictures, and ``index.toml`` with the purpose of each fabric."""

from ibsim_fixtures.catalogue import FIXTURES, Fixture

__all__ = ["FIXTURES", "Fixture"]
