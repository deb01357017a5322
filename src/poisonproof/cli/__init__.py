"""The command ``poisonproof``: one module for each of its commands, imported when the command is run."""
