"""Everything poisonproof raises on purpose.

::

    PoisonproofError
    ├── ParameterError        (ValueError)  a parameter has a value that is not allowed
    │   └── ThreatError                     … that cannot serve the declared threat
    ├── ParameterTypeError    (TypeError)   a parameter has the wrong type
    ├── DataError             (ValueError)  rows, targets, groups or bounds that cannot be used
    │   └── SchemaError                     … that do not fit the declared schema
    ├── FileError             (ValueError)  a file that cannot be read, or was changed
    └── MissingExtraError     (ImportError) an optional dependency is not installed

Each message says what was given, what is allowed, and, where there is one, the way out.
"""

__all__ = [
    "DataError",
    "FileError",
    "MissingExtraError",
    "ParameterError",
    "ParameterTypeError",
    "PoisonproofError",
    "SchemaError",
    "ThreatError",
]


class PoisonproofError(Exception):
    """The root of every error raised on purpose."""


class ParameterError(PoisonproofError, ValueError):
    """A parameter has a value that is not allowed."""


class ThreatError(ParameterError):
    """A parameter cannot serve the declared threat."""


class ParameterTypeError(PoisonproofError, TypeError):
    """A parameter has the wrong type."""


class DataError(PoisonproofError, ValueError):
    """Rows, targets, groups or bounds cannot be used."""


class SchemaError(DataError):
    """Rows do not fit the declared schema."""


class FileError(PoisonproofError, ValueError):
    """A file cannot be read, or was changed since it was written."""


class MissingExtraError(PoisonproofError, ImportError):
    """An optional dependency is not installed."""
