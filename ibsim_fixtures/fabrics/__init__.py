"""The fixture fabrics: net files, their pictures, and ``index.toml``, which says what each is for."""

from ibsim_fixtures.catalogue import FIXTURES, Fixture

__all__ = ["FIXTURES", "Fixture"]
