from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from poisonproof import Certificate, CertifiedClassifier, Interval, Threat
from poisonproof.certificate import bounds_of
from poisonproof.errors import DataError, MissingExtraError, ParameterError


def certificate(**changes: Any) -> Certificate:
    fields: dict[str, Any] = {
        "prediction": np.array([4000.0, 2.5, 9.0, 1.0]),
        "radius": np.array([12, 1, -1, 30]),
        "attack": np.array([13, 3, 0, 31]),
        "unbreakable": np.array([False, False, False, True]),
        "threat": Threat(),
        "method": "unit cost",
        "lower": np.array([3400.0, -np.inf, 1.0, 0.0]),
        "upper": np.array([4600.0, 2.75, 2.0, np.inf]),
    }
    return Certificate(**(fields | changes))


def test_sentences() -> None:
    cert = certificate()
    assert cert.summary(0) == "any 12 inserted or deleted training rows leave this prediction within [3,400, 4,600]"
    assert cert.summary(1) == "any 1 inserted or deleted training row leaves this prediction at or below 2.75"
    assert cert.summary(2).startswith("this prediction is not within [1, 2], so nothing is certified")
    assert "no modification of the kind" in cert.summary(3)
    assert cert.summary(3).endswith("it stays at or above 0")


def test_overview_counts_what_is_inside() -> None:
    text = certificate().summary()
    assert text.startswith("3 of 4 predictions are within their bounds")
    assert "any 12 inserted or deleted training rows (unit cost)" in text
    outside = certificate(radius=np.full(4, -1), attack=np.zeros(4, dtype=int))
    assert outside.summary().startswith("none of 4 predictions is within its bounds")


def classes(*radii: int, target: str) -> Certificate:
    radius = np.array(radii)
    return certificate(
        prediction=np.array(["h"] * len(radii)),
        radius=radius,
        attack=radius + 1,
        unbreakable=np.zeros(len(radii), dtype=bool),
        lower=None,
        upper=None,
        target=np.array([target] * len(radii)),
    )


def test_a_prediction_that_abstentions_could_outvote_is_at_its_class() -> None:
    cert = classes(-1, 2, -1, 1, target="h")
    assert cert.summary(0).startswith("this prediction is at class h, but empty or refused submodels could outvote it")
    assert "use fewer partitions, or declare the classes" in cert.summary(0)
    assert cert.summary(1) == "any 2 inserted or deleted training rows leave this prediction at class h"
    assert cert.summary().startswith("2 of 4 predictions are certified; at least half of those withstand any 1 ")
    assert cert.summary().endswith("; 2 could be outvoted by empty or refused submodels")
    none = classes(-1, -1, target="h").summary()
    assert none.startswith("none of 2 predictions is certified, and 2 could be outvoted by empty or refused submodels")
    other = classes(-1, -1, target="other")
    assert other.summary(0).startswith("this prediction is not at class other, so nothing is certified")
    assert other.summary().startswith("none of 2 predictions is at its class")
    assert classes(1, 2, target="h").summary().startswith("2 of 2 predictions are at their class; ")


@pytest.mark.filterwarnings("ignore:.*submodels have no rows.*:UserWarning")
def test_the_sentence_of_a_classifier_with_many_empty_submodels_is_true() -> None:
    X, y = np.arange(8.0).reshape(-1, 1), np.array(["h", "g"] * 4)
    cert = CertifiedClassifier(DecisionTreeClassifier(), n_partitions=60).fit(X, y).certify(X)
    assert (cert.radius == -1).all()
    for row, label in enumerate(cert.prediction):
        assert cert.summary(row).startswith(f"this prediction is at class {label}, but empty or refused submodels")
    assert "is at its class" not in cert.summary()


def test_exact_is_where_an_attack_costs_one_more() -> None:
    assert certificate().exact.tolist() == [True, False, True, True]


def test_an_attack_within_the_radius_is_refused() -> None:
    with pytest.raises(DataError, match="must cost more"):
        certificate(attack=np.array([12, 3, 0, 31]))


def test_dict_is_json_with_threat_unit_and_method() -> None:
    record = json.loads(json.dumps(certificate().to_dict(), allow_nan=False))
    assert (record["threat"], record["unit"], record["method"]) == ("insert+delete", "row", "unit cost")
    assert record["radius"] == [12, 1, -1, 30]
    assert record["lower"][1] is None
    assert record["schema_version"] == 1


def test_frame_carries_the_threat_in_every_row() -> None:
    frame = certificate().to_frame()
    assert list(frame["threat"].unique()) == ["insert+delete"]
    assert frame["radius"].tolist() == [12, 1, -1, 30]


def test_frame_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        certificate().to_frame()


def test_html_escapes_and_cuts() -> None:
    many = certificate(
        prediction=np.array(["<b>"] * 10, dtype=object),
        radius=np.arange(10),
        attack=np.arange(1, 11),
        unbreakable=np.zeros(10, dtype=bool),
        lower=None,
        upper=None,
        target=np.array(["<b>"] * 10, dtype=object),
    )
    html = many._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "2 more rows" in html
    assert many.summary(3) == "any 3 inserted or deleted training rows leave this prediction at class <b>"
    assert "Certificate of 10" in repr(many)


def test_interval_in_words_frames_and_json() -> None:
    ends = Interval(np.array([-np.inf]), np.array([12345.678]), np.array([3.0]), 2, Threat("delete"), "sort")
    assert ends.summary(0) == "any 2 deleted training rows leave this prediction within [-∞, 12,346]"
    assert json.loads(json.dumps(ends.to_dict(), allow_nan=False))["lower"] == [None]
    assert ends.to_frame()["budget"].tolist() == [2]
    assert ends.to_frame()["method"].tolist() == ["sort"]
    assert len(ends) == 1
    assert "any 2 deleted" in repr(ends)
    assert "12,346" in ends._repr_html_()


def test_all_intervals_in_words() -> None:
    lower, upper = np.array([0.0, 1.0, -np.inf]), np.array([1.0, 3.5, 2.0])
    ends = Interval(lower, upper, np.array([0.5, 2.0, 1.0]), 1, Threat("delete"), "sort")
    said = "any 1 deleted training row leaves 3 predictions within their ends"
    assert ends.summary() == f"{said}, half of which are at most 2.5 apart"
    endless = Interval(lower, np.full(3, np.inf), ends.prediction, 1, Threat("delete"), "sort")
    assert endless.summary() == f"{said}, half of which are at most ∞ apart"
    none = np.zeros(0)
    assert (
        Interval(none, none, none, 1, Threat("delete"), "sort")
        .summary()
        .endswith(" leaves 0 predictions within their ends")
    )


def test_bounds_within() -> None:
    prediction = np.array([10.0, -10.0])
    low, high = bounds_of(prediction, None, None, 0.1, relative=True)
    assert (low.tolist(), high.tolist()) == ([9.0, -11.0], [11.0, -9.0])
    low, high = bounds_of(prediction, None, None, 3.0, relative=False)
    assert (low.tolist(), high.tolist()) == ([7.0, -13.0], [13.0, -7.0])


@pytest.mark.parametrize(
    ("lower", "upper", "within", "message"),
    [
        (None, None, None, "no bounds were given"),
        (1.0, None, 0.1, "both given"),
        (None, None, -0.1, "at least 0"),
        (None, None, float("nan"), "at least 0"),
        (2.0, [3.0, 1.0], None, r"lower=2 is above upper=1 in row 1"),
        ([1.0, 2.0, 3.0], None, None, r"lower has shape \(3,\)"),
        (None, [0.0, float("nan")], None, "upper contains NaN"),
        ("low", None, None, "must be a number"),
    ],
)
def test_bad_bounds(lower: Any, upper: Any, within: Any, message: str) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        bounds_of(np.zeros(2), lower, upper, within, relative=True)
