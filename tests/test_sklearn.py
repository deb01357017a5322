from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from poisonproof import CertifiedClassifier, CertifiedRegressor

ESTIMATORS = [
    CertifiedRegressor(),
    CertifiedRegressor(threat="delete", max_cost=2, n_partitions=3),
    CertifiedRegressor(n_partitions=9, spread=4),
    CertifiedClassifier(),
    CertifiedClassifier(rule="runoff", n_partitions=4),
    CertifiedClassifier(threat="delete", max_cost=2, n_partitions=3),
]


# Estimator checks fit tiny tables, on which blocks are allowed to stay empty.
@pytest.mark.filterwarnings("ignore:.*have no rows")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)
