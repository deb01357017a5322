"""Certified ensembles: thin scikit-learn faces over blocks, votes, costs and bounds. No mathematics here."""

from poisonproof.ensemble.classifier import CertifiedClassifier
from poisonproof.ensemble.regressor import CertifiedRegressor

__all__ = ["CertifiedClassifier", "CertifiedRegressor"]
