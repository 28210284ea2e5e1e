"""Check each JSON document that a command prints: it is the only text on standard output, and fits its schema."""

import functools
import json

from click.testing import CliRunner

from routing.cli.json_schemas import load_schema

try:
    from jsonschema import Draft202012Validator
except ImportError:  # The environment lacks the optional packages for tests, so no schema can be checked.
    Draft202012Validator = None


@functools.cache
def validator(name):
    return Draft202012Validator(load_schema(name))


def schema_name(schema):
    """Return the name of a schema ("check") from the value of the key ``schema`` ("ibnue-check/1")."""
    return schema.removeprefix("ibnue-").partition("/")[0]


def assert_fits(name, document):
    """Check that a document fits the schema with the given name."""
    for error in validator(name).iter_errors(document):
        raise AssertionError(f"{name}: {error.json_path}: {error.message[:300]}")


def assert_valid(document):
    """Check that a document fits the schema that its key ``schema`` names."""
    assert_fits(schema_name(document["schema"]), document)


def assert_one_document(output):
    """Check that a text is a single JSON document that fits its schema."""
    assert_valid(json.loads(output))


def check_every_run(patch):
    """Patch click's test runner such that it checks the output of each command with ``--json``, including errors."""
    if Draft202012Validator is None:
        return
    invoke = CliRunner.invoke

    def checked(self, command, args=None, *more, **options):
        result = invoke(self, command, args, *more, **options)
        words = args or ()
        raised = not options.get("standalone_mode", True) and result.exception is not None
        if "--json" in words and not {"-h", "--help"} & {*words} and not raised:
            assert_one_document(result.stdout)
        return result

    patch.setattr(CliRunner, "invoke", checked)
