from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from poisonproof import CertifiedRegressor

ESTIMATORS = [CertifiedRegressor(), CertifiedRegressor(threat="delete", max_cost=2, n_partitions=3)]


# Estimator checks fit tiny tables, on which blocks are allowed to stay empty.
@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)
