"""The literature's evaluation, run again: its methods and settings on its data sets, beside its figures and ours."""

from poisonproof.paper.cells import METHODS, Cell, Formula, Method, Plan, cells_of
from poisonproof.paper.keep import Keeper
from poisonproof.paper.pages import write_pages
from poisonproof.paper.results import Results
from poisonproof.paper.run import run

__all__ = ["METHODS", "Cell", "Formula", "Keeper", "Method", "Plan", "Results", "cells_of", "run", "write_pages"]
