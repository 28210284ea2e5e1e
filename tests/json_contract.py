"""What every JSON document of ibnue has to fulfil: it is the only thing on standard output, and fits its schema."""

import functools
import json

from click.testing import CliRunner

from routing.cli.json_schemas import load_schema, schema_name

try:
    from jsonschema import Draft202012Validator
except ImportError:  # an environment from before the test extra had it
    Draft202012Validator = None


@functools.cache
def validator(name):
    return Draft202012Validator(load_schema(name))


def assert_fits(name, document):
    """A document fits a schema."""
    for error in validator(name).iter_errors(document):
        raise AssertionError(f"{name}: {error.json_path}: {error.message[:300]}")


def assert_valid(document):
    """A document fits the schema that it names."""
    assert_fits(schema_name(document["schema"]), document)


def assert_one_document(output):
    """Standard output is one document that fits its schema."""
    assert_valid(json.loads(output))


def check_every_run(patch):
    """Check the standard output of every command that a test runs with ``--json``, errors included."""
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
