"""Models without submodels: the training rows near a test row vote themselves."""

from poisonproof.neighbors.choose import Choice, choose_parameter
from poisonproof.neighbors.kernel import CertifiedKernelClassifier, CertifiedKernelRegressor
from poisonproof.neighbors.metric import Metric, MetricName
from poisonproof.neighbors.nearest import CertifiedNeighborsClassifier, CertifiedNeighborsRegressor
from poisonproof.neighbors.similarity import LargestSimilarity, Similarity
from poisonproof.neighbors.within_radius import CertifiedRadiusClassifier, CertifiedRadiusRegressor

__all__ = [
    "CertifiedKernelClassifier",
    "CertifiedKernelRegressor",
    "CertifiedNeighborsClassifier",
    "CertifiedNeighborsRegressor",
    "CertifiedRadiusClassifier",
    "CertifiedRadiusRegressor",
    "Choice",
    "LargestSimilarity",
    "Metric",
    "MetricName",
    "Similarity",
    "choose_parameter",
]
