from __future__ import annotations

from itertools import combinations
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from poisonproof import CertifiedClassifier, CertifiedRegressor
from poisonproof.errors import DataError, ParameterError, ThreatError
from poisonproof.layout import make_layout

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 2)).round(1)
LABELS = np.array(["blue", "green", "red"])
Y = LABELS[np.digitize(X.sum(axis=1) + RNG.normal(scale=0.3, size=150), [-0.5, 0.5])]
QUERIES = RNG.normal(size=(20, 2))


def fitted(**parameters: Any) -> CertifiedClassifier:
    return CertifiedClassifier(**({"n_partitions": 9} | parameters)).fit(X, Y)


@pytest.mark.parametrize("rule", ["plurality", "runoff"])
@pytest.mark.parametrize("classes", [None, ["blue", "green", "red", "violet"]])
@pytest.mark.parametrize("estimator", [None, GaussianNB(), DecisionTreeClassifier(max_depth=3)])
def test_predictions_are_certified_at_no_less_than_zero(rule: Any, classes: Any, estimator: Any) -> None:
    model = fitted(rule=rule, classes=classes, estimator=estimator)
    cert = model.certify(QUERIES)
    assert np.array_equal(cert.prediction, model.predict(QUERIES))
    assert (cert.radius >= 0).all()
    assert cert.radius.max() > 0
    wrong = np.where(cert.prediction == "red", "blue", "red")
    assert set(model.certify(QUERIES, wrong).radius) == {-1}
    assert "leave this prediction at class" in cert.summary(int(np.argmax(cert.radius)))


def test_any_order_of_the_rows_and_any_process_gives_the_same_votes() -> None:
    order = RNG.permutation(len(X))
    for partition_by in ("features", "row"):
        model = CertifiedClassifier(n_partitions=8, partition_by=partition_by)
        votes = clone(model).fit(X, Y).votes(QUERIES)
        assert np.array_equal(votes, clone(model).fit(X[order], Y[order]).votes(QUERIES))
        assert np.array_equal(votes, clone(model).set_params(n_jobs=2).fit(X, Y).votes(QUERIES))


@pytest.mark.parametrize("partition_by", ["features", "row"])
def test_a_row_of_a_class_nobody_has_seen_moves_its_own_block_alone(partition_by: Any) -> None:
    model = fitted(partition_by=partition_by)
    row, label = np.array([[0.3, 0.4]]), np.array(["aquamarine"])  # it sorts before all others
    (block,) = model.blocks(row, label)
    changed = clone(model).fit(np.vstack([X, row]), np.append(Y, label))
    others = np.arange(9) != block
    assert np.array_equal(model.votes(QUERIES)[others], changed.votes(QUERIES)[others])
    assert np.array_equal(model.blocks(X, Y), changed.blocks(X, Y))


def test_shares_of_votes() -> None:
    model = fitted()
    shares = model.predict_proba(QUERIES)
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(QUERIES))


def test_blocks_without_rows_abstain_or_vote_what_is_declared() -> None:
    with pytest.warns(UserWarning, match="have no rows"):
        abstaining = CertifiedClassifier(n_partitions=401).fit(X, Y)
    assert (abstaining.votes(QUERIES) == None).any()  # noqa: E711  element by element
    with pytest.warns(UserWarning, match="have no rows"):
        declared = CertifiedClassifier(n_partitions=401, classes=[*LABELS, "none"], empty_value="none").fit(X, Y)
    assert set(declared.predict(QUERIES)) == {"none"}
    # Where most abstain, their count stands against the certificate.
    assert set(abstaining.certify(QUERIES).radius) == {-1}
    assert set(declared.certify(QUERIES).radius) != {-1}


@pytest.mark.filterwarnings("ignore:.*have no rows")
def test_a_block_of_one_class_votes_it() -> None:
    y = np.where(np.arange(150) < 2, "rare", "common")
    model = CertifiedClassifier(GaussianNB(), 30, classes=["common", "rare"]).fit(X, y)
    assert (model.votes(QUERIES) == "common").mean() > 0.9
    assert {submodel.reason for submodel in model.submodels_} <= {None, "empty"}


@pytest.mark.parametrize("threat", ["insert+delete", "relabel", "delete"])
@pytest.mark.parametrize("spread", [1, 4])
def test_binary_classes_agree_with_a_regressor_on_signs(threat: Any, spread: int) -> None:
    data, labels = load_breast_cancer(return_X_y=True)
    data = data / data.max(axis=0)
    layout = "triples" if spread == 1 else make_layout(15, spread).incidence  # an odd number of submodels
    settings: dict[str, Any] = {"n_partitions": 15, "layout": layout, "threat": threat}
    classifier = CertifiedClassifier(RidgeClassifier(), classes=[0, 1], **settings).fit(data[100:], labels[100:])
    regressor = CertifiedRegressor(Ridge(), empty_value=-1.0, **settings).fit(data[100:], 2.0 * labels[100:] - 1)
    cert = classifier.certify(data[:100])
    low, high = np.where(cert.prediction == 1, 0.0, -np.inf), np.where(cert.prediction == 1, np.inf, 0.0)
    same = regressor.certify(data[:100], low, high)
    assert np.array_equal(cert.radius, same.radius)
    assert cert.radius.max() > 2


@pytest.mark.filterwarnings("ignore:.*have no rows")
def test_costs_certify_more_deletions_and_hold_when_every_subset_is_really_deleted() -> None:
    rng = np.random.default_rng(4)
    deepest = 0
    for rule in ("plurality", "runoff"):
        for name in ([0, 1, 2], None):
            x = rng.normal(size=(9, 2)).round(1)
            y = np.digitize(x[:, 0], [-0.5, 0.5])
            y[:3] = [0, 1, 2]
            model = CertifiedClassifier(
                GaussianNB(),
                3,
                threat="delete",
                max_cost=2,
                rule=rule,
                classes=name,
            ).fit(x, y)
            plain = clone(model).set_params(max_cost=1)
            query = rng.normal(size=(6, 2))
            cert, unit = model.certify(query), clone(plain).fit(x, y).certify(query)
            assert (cert.radius >= unit.radius).all()
            for size in range(1, int(cert.radius.max()) + 1):
                for gone in combinations(range(9), size):
                    kept = np.delete(y, gone)
                    if name is None and len(np.unique(kept)) < 2:
                        continue
                    after = clone(plain).fit(np.delete(x, gone, 0), kept).predict(query)
                    withstood = cert.radius >= size
                    assert np.array_equal(after[withstood], cert.prediction[withstood])
                    deepest = max(deepest, size)
    assert deepest >= 1


@pytest.mark.filterwarnings("ignore:.*have no rows")
@pytest.mark.parametrize("rule", ["plurality", "runoff"])
@pytest.mark.parametrize("classes", [None, range(10)])
def test_digits_withstand_flipped_inserted_and_deleted_rows(rule: Any, classes: Any) -> None:
    data, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(3)
    model = CertifiedClassifier(GaussianNB() if rule == "plurality" else None, 25, rule=rule, classes=classes)
    model.fit(data[20:700], labels[20:700])
    cert = model.certify(data[:20])
    home, votes = model.blocks(data[20:700]), model.votes(data[:20])
    for row in np.argsort(-cert.radius)[:6]:
        winning = np.flatnonzero(votes[:, row] == cert.prediction[row])[: cert.radius[row]]
        rival = (cert.prediction[row] + rng.integers(1, 10)) % 10
        rows, y = data[20:700].copy(), labels[20:700].copy()
        keep = np.ones(len(y), dtype=bool)
        for block in winning:
            inside = np.flatnonzero(home == block)
            if rng.random() < 0.5:
                y[inside[rng.integers(len(inside))]] = rival  # a changed label stays in its block
            else:
                keep[inside[rng.integers(len(inside))]] = False
        after = clone(model).fit(rows[keep], y[keep]).predict(data[row : row + 1])
        assert after[0] == cert.prediction[row]


def test_one_more_insertion_than_the_radius_wins_where_votes_follow_the_row() -> None:
    # A nearest neighbour votes whatever stands at the query, so each touched block really turns.
    model = CertifiedClassifier(KNeighborsClassifier(1), 11, classes=list(LABELS)).fit(X, Y)
    query = QUERIES[:1]
    cert = model.certify(query)
    votes = model.votes(query)[:, 0]
    counts = {label: int((votes == label).sum()) for label in LABELS}
    rng = np.random.default_rng(0)
    broken = set()
    for budget in (int(cert.radius[0]), int(cert.attack[0])):
        for rival in set(LABELS) - {cert.prediction[0]}:
            order = np.argsort(votes != cert.prediction[0], kind="stable")
            targets = [block for block in order if votes[block] != rival][:budget]
            rows = []
            for block in targets:
                while True:
                    row = query + rng.normal(scale=1e-9, size=(1, 2))
                    if model.blocks(row)[0] == block:
                        rows.append(row)
                        break
            attacked = clone(model).fit(np.vstack([X, *rows]), np.append(Y, [rival] * len(rows)))
            if attacked.predict(query)[0] != cert.prediction[0]:
                broken.add(budget)
    assert broken == {int(cert.attack[0])}, counts


def test_frames_and_string_labels() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = CertifiedClassifier(n_partitions=9).fit(frame, pd.Series(Y))
    assert np.array_equal(model.votes(QUERIES_FRAME), fitted().votes(QUERIES))


QUERIES_FRAME = pd.DataFrame(QUERIES, columns=["a", "b"])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"rule": "borda"}, ParameterError, "rule='borda' is unknown"),
        ({"estimator": LinearRegression()}, ParameterError, "predicts numbers"),
        (
            {"rule": "runoff", "estimator": VotingClassifier([("ridge", RidgeClassifier())])},
            ParameterError,
            "has neither predict_proba",
        ),
        ({"classes": ["red"]}, DataError, "classes= declares one class"),
        ({"classes": ["red", "blue"]}, DataError, "contains 'green'"),
        ({"empty_value": "red"}, ParameterError, "needs declared classes"),
        (
            {"empty_value": "pink", "classes": list(LABELS)},
            ParameterError,
            "empty_value='pink' is not a class; use one of the classes=",
        ),
        ({"max_cost": 2}, ThreatError, "deletions of rows only"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fitted(**parameters)


def test_bad_data() -> None:
    with pytest.raises(DataError, match="y has one class"):
        CertifiedClassifier().fit(X, np.zeros(150, dtype=int))
    with pytest.raises(ValueError, match="continuous"):
        CertifiedClassifier().fit(X, X[:, 0])
    with pytest.raises(DataError, match="not one of the classes"):
        fitted().certify(QUERIES, ["pink"] * 20)
    with pytest.raises(DataError, match=r"y has shape \(1,\)"):
        fitted().certify(QUERIES, ["red"])


@pytest.mark.filterwarnings("ignore:.*have no rows")
def test_a_classifier_that_knows_nothing_is_certified_as_well() -> None:
    model = fitted(estimator=DummyClassifier(), rule="runoff", classes=list(LABELS))
    assert (model.certify(QUERIES).radius >= 0).all()


@pytest.mark.parametrize("layout", [np.eye(4, dtype=int)[[3, 0, 1, 2]], [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]])
@pytest.mark.filterwarnings("ignore:.*have no rows")
def test_runoff_with_costs_counts_the_rows_of_its_own_blocks(layout: Any) -> None:
    rng = np.random.default_rng(28)
    settings: dict[str, Any] = {"rule": "runoff", "max_cost": 2, "threat": "delete", "classes": ["b", "c"]}
    for _ in range(15):
        n_rows = int(rng.integers(5, 10))
        rows, labels = rng.normal(size=(n_rows, 2)), np.array(["b", "c"])[rng.integers(0, 2, n_rows)]
        certificate = CertifiedClassifier(layout=layout, **settings).fit(rows, labels).certify(rows)
        for gone in range(n_rows):
            left = np.arange(n_rows) != gone
            after = CertifiedClassifier(layout=layout, **settings).fit(rows[left], labels[left]).predict(rows)
            assert not ((after != certificate.prediction) & (certificate.radius >= 1)).any()


def test_efforts_are_checked_where_no_block_is_shared() -> None:
    model = CertifiedClassifier(n_partitions=5).fit(X, Y)
    with pytest.raises(ParameterError, match="effort='bogus' is unknown"):
        model.certify(X, effort=cast("Any", "bogus"))
    with pytest.raises(ParameterError, match="time_limit=-1 must be"):
        model.certify(X, time_limit=-1)
