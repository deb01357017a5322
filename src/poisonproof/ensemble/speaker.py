"""A classifier that speaks in the places of declared labels, and ranks all of them, seen or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor

from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CodeSpeaker", "check_classifier", "check_scores"]

_SHAPE: Final = "decision_function_shape"


class CodeSpeaker(BaseEstimator):
    """Trains the classifier on labels, and answers in their places among ``labels``.

    The classifier sees the labels themselves, so nothing it learns depends on which other labels there are. Rows of a
    single class need no classifier: they vote that class.
    """

    def __init__(self, classifier: Any, labels: NDArray[Any]) -> None:  # noqa: ANN401  any scikit-learn classifier
        self.classifier = classifier
        self.labels = labels

    def fit(self, X: NDArray[np.float64], codes: NDArray[np.float64]) -> Self:
        """Train on the labels whose places are ``codes``."""
        places = codes.astype(np.int64)
        self.only_ = int(places[0]) if np.all(places == places[0]) else None
        if self.only_ is None:
            self.classifier_ = clone(self.classifier).fit(X, self.labels[places])
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The place of the predicted label, ``(n_rows,)``; not a number for what is no label."""
        if self.only_ is not None:
            return np.full(len(X), float(self.only_))
        labels = np.asarray(self.classifier_.predict(X))
        places = np.minimum(np.searchsorted(self.labels, labels), len(self.labels) - 1)
        return np.where(self.labels[places] == labels, places, np.nan)

    def scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """A score for every label, ``(n_rows, n_labels)``; ``-inf`` for labels that were not among the rows."""
        scores = np.full((len(X), len(self.labels)), -np.inf)
        if self.only_ is not None:
            scores[:, self.only_] = 0.0
            return scores
        seen = np.searchsorted(self.labels, self.classifier_.classes_)
        scores[:, seen] = _class_scores(self.classifier_, X)
        return scores


def _class_scores(classifier: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X))
    scores = np.asarray(classifier.decision_function(X))
    return scores if scores.ndim == 2 else np.column_stack([-scores, scores])


def check_classifier(classifier: Any) -> None:  # noqa: ANN401
    """Refuse an estimator that predicts numbers."""
    if is_regressor(classifier):
        raise ParameterError(
            f"estimator={type(classifier).__name__} predicts numbers, and votes must be classes; use a classifier, or "
            "CertifiedRegressor for two classes as -1 and 1"
        )


def check_scores(classifier: Any) -> None:  # noqa: ANN401
    """Refuse a classifier that gives no class scores."""
    if not (hasattr(classifier, "predict_proba") or hasattr(classifier, "decision_function")):
        raise ParameterError(
            f"rule='runoff' needs class scores, and {type(classifier).__name__} has neither predict_proba nor "
            "decision_function; use one that has (LogisticRegression, RidgeClassifier, DecisionTreeClassifier, "
            "GaussianNB, …), or rule='plurality'"
        )
    parameters = classifier.get_params() if hasattr(classifier, "get_params") else {}
    pairwise = [name for name, value in parameters.items() if name.endswith(_SHAPE) and value == "ovo"]
    if pairwise and not hasattr(classifier, "predict_proba"):
        raise ParameterError(
            f"rule='runoff' needs a score for each class, and {pairwise[0]}='ovo' gives one for each pair; use 'ovr', "
            "or rule='plurality'"
        )
