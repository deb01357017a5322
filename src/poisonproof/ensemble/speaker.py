"""A classifier that speaks in the places of declared labels, and ranks all of them, seen or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor

from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CodeSpeaker", "check_classifier", "check_scores", "class_weights_in"]

_SHAPE: Final = "decision_function_shape"
_WEIGHTS: Final = "class_weight"


class CodeSpeaker(BaseEstimator):
    """Trains the classifier on labels, and answers in their places among all labels.

    Parameters
    ----------
    classifier : classifier
        Any of scikit-learn's kind.
    n_labels : int
        How many labels there are.
    labels : array (n_labels,) or None
        The declared labels, which the classifier is to see; None: it sees numbers that stand for them.

    Notes
    -----
    Nothing that the classifier learns depends on which other labels there are. Rows of a single class need no
    classifier: they vote that class.
    """

    def __init__(self, classifier: Any, n_labels: int, labels: NDArray[Any] | None = None) -> None:  # noqa: ANN401
        self.classifier = classifier
        self.n_labels = n_labels
        self.labels = labels

    def fit(self, X: NDArray[np.float64], codes: NDArray[np.float64]) -> Self:
        """Train on the labels whose places are ``codes``."""
        places = codes.astype(np.int64)
        # Sound because labels that were not declared have the type of the array they came in, which a row of another
        # block may change; their order among themselves it cannot.
        self.seen_, ranks = np.unique(places, return_inverse=True)
        if len(self.seen_) > 1:
            self.classifier_ = clone(self.classifier).fit(X, ranks if self.labels is None else self.labels[places])
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The place of the predicted label, ``(n_rows,)``; not a number for what is no label."""
        if len(self.seen_) == 1:
            return np.full(len(X), float(self.seen_[0]))
        answers = np.asarray(self.classifier_.predict(X))
        places = np.full(len(X), np.nan)
        for place, label in zip(self.seen_, self._spoken(), strict=True):
            places[answers == label] = place
        return places

    def scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """A score for every label, ``(n_rows, n_labels)``; ``-inf`` for labels that were not among the rows."""
        scores = np.full((len(X), self.n_labels), -np.inf)
        if len(self.seen_) == 1:
            scores[:, self.seen_] = 0.0
            return scores
        spoken = list(self._spoken())
        order = [spoken.index(label) for label in self.classifier_.classes_]
        scores[:, self.seen_[order]] = _class_scores(self.classifier_, X)
        return scores

    def _spoken(self) -> NDArray[Any]:
        """What the classifier calls the labels it has seen."""
        return np.arange(len(self.seen_)) if self.labels is None else np.asarray(self.labels[self.seen_])


def _class_scores(classifier: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X))
    scores = np.asarray(classifier.decision_function(X))
    return scores if scores.ndim == 2 else np.column_stack([-scores, scores])


def class_weights_in(classifier: Any) -> str | None:  # noqa: ANN401
    """The parameter in which a classifier, or a part of it, weighs classes by their names; None if there is none."""
    parameters = classifier.get_params() if hasattr(classifier, "get_params") else {}
    named = (
        f"{name}={value!r}" for name, value in parameters.items() if isinstance(value, dict) and name.endswith(_WEIGHTS)
    )
    return next(named, None)


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
