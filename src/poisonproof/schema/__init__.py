"""Mixed tables to numbers by declaration alone: ranges and categories that no training row can change.

table → columns (:mod:`~poisonproof.schema.tables`) → cells (:mod:`~poisonproof.schema.cells`) → features
(:mod:`~poisonproof.schema.columns`), assembled by :class:`Schema` and kept in a TOML file.
"""

from poisonproof.schema.columns import Category, Column, Numeric, Ordinal, Target
from poisonproof.schema.propose import propose_schema
from poisonproof.schema.transformer import Schema

__all__ = ["Category", "Column", "Numeric", "Ordinal", "Schema", "Target", "propose_schema"]
