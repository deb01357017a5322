"""Regressors and classifiers whose individual predictions come with a proof against poisoned training data."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poisonproof.certificate import Certificate as Certificate
    from poisonproof.certificate import Interval as Interval
    from poisonproof.datasets import load_diamonds as load_diamonds
    from poisonproof.ensemble import CertifiedClassifier as CertifiedClassifier
    from poisonproof.ensemble import CertifiedRegressor as CertifiedRegressor
    from poisonproof.errors import PoisonproofError as PoisonproofError
    from poisonproof.evaluate import CertifiedAccuracy as CertifiedAccuracy
    from poisonproof.evaluate import certified_accuracy as certified_accuracy
    from poisonproof.forest import CertifiedForestRegressor as CertifiedForestRegressor
    from poisonproof.learners import BoostedTreesRegressor as BoostedTreesRegressor
    from poisonproof.learners import KernelRidge as KernelRidge
    from poisonproof.neighbors import CertifiedKernelClassifier as CertifiedKernelClassifier
    from poisonproof.neighbors import CertifiedKernelRegressor as CertifiedKernelRegressor
    from poisonproof.neighbors import CertifiedNeighborsClassifier as CertifiedNeighborsClassifier
    from poisonproof.neighbors import CertifiedNeighborsRegressor as CertifiedNeighborsRegressor
    from poisonproof.neighbors import CertifiedRadiusClassifier as CertifiedRadiusClassifier
    from poisonproof.neighbors import CertifiedRadiusRegressor as CertifiedRadiusRegressor
    from poisonproof.neighbors import LargestSimilarity as LargestSimilarity
    from poisonproof.neighbors import Metric as Metric
    from poisonproof.neighbors import Similarity as Similarity
    from poisonproof.neighbors import choose_parameter as choose_parameter
    from poisonproof.rowlocal import Finding as Finding
    from poisonproof.rowlocal import check_pipeline as check_pipeline
    from poisonproof.schema import Category as Category
    from poisonproof.schema import Numeric as Numeric
    from poisonproof.schema import Ordinal as Ordinal
    from poisonproof.schema import Schema as Schema
    from poisonproof.schema import Target as Target
    from poisonproof.schema import propose_schema as propose_schema
    from poisonproof.store import load as load
    from poisonproof.store import load_certificate as load_certificate
    from poisonproof.store import save as save
    from poisonproof.store import save_certificate as save_certificate
    from poisonproof.threat import Threat as Threat

_HOME = {
    "BoostedTreesRegressor": "learners",
    "Category": "schema",
    "Certificate": "certificate",
    "CertifiedAccuracy": "evaluate",
    "CertifiedClassifier": "ensemble",
    "CertifiedForestRegressor": "forest",
    "CertifiedKernelClassifier": "neighbors",
    "CertifiedKernelRegressor": "neighbors",
    "CertifiedNeighborsClassifier": "neighbors",
    "CertifiedNeighborsRegressor": "neighbors",
    "CertifiedRadiusClassifier": "neighbors",
    "CertifiedRadiusRegressor": "neighbors",
    "CertifiedRegressor": "ensemble",
    "Finding": "rowlocal",
    "Interval": "certificate",
    "KernelRidge": "learners",
    "LargestSimilarity": "neighbors",
    "Metric": "neighbors",
    "Numeric": "schema",
    "Ordinal": "schema",
    "PoisonproofError": "errors",
    "Schema": "schema",
    "Similarity": "neighbors",
    "Target": "schema",
    "Threat": "threat",
    "certified_accuracy": "evaluate",
    "check_pipeline": "rowlocal",
    "choose_parameter": "neighbors",
    "load": "store",
    "load_certificate": "store",
    "load_diamonds": "datasets",
    "propose_schema": "schema",
    "save": "store",
    "save_certificate": "store",
}

__all__ = [
    "BoostedTreesRegressor",
    "Category",
    "Certificate",
    "CertifiedAccuracy",
    "CertifiedClassifier",
    "CertifiedForestRegressor",
    "CertifiedKernelClassifier",
    "CertifiedKernelRegressor",
    "CertifiedNeighborsClassifier",
    "CertifiedNeighborsRegressor",
    "CertifiedRadiusClassifier",
    "CertifiedRadiusRegressor",
    "CertifiedRegressor",
    "Finding",
    "Interval",
    "KernelRidge",
    "LargestSimilarity",
    "Metric",
    "Numeric",
    "Ordinal",
    "PoisonproofError",
    "Schema",
    "Similarity",
    "Target",
    "Threat",
    "__version__",
    "certified_accuracy",
    "check_pipeline",
    "choose_parameter",
    "load",
    "load_certificate",
    "load_diamonds",
    "propose_schema",
    "save",
    "save_certificate",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  any public object
    """A public name, imported when it is first used, so that importing the package costs nothing."""
    if name == "__version__":
        return version("poisonproof")
    if name not in _HOME:
        raise AttributeError(f"module 'poisonproof' has no attribute {name!r}")
    return getattr(import_module(f"poisonproof.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
