from __future__ import annotations

import pytest

from poisonproof import Threat
from poisonproof.errors import ParameterError


@pytest.mark.parametrize(
    ("threat", "count", "phrase"),
    [
        (Threat(), 12, "any 12 inserted or deleted training rows"),
        (Threat("delete"), 1, "any 1 deleted training row"),
        (Threat("insert"), 0, "any 0 inserted training rows"),
        (Threat("relabel"), 1200, "any 1,200 relabelled training rows"),
        (Threat("insert+delete", "source"), 3, "any 3 inserted, deleted or altered training sources"),
        (Threat("delete", "source"), 2, "any 2 deleted training sources"),
    ],
)
def test_phrase(threat: Threat, count: int, phrase: str) -> None:
    assert threat.phrase(count) == phrase


def test_unknown_names_are_refused_with_the_names_there_are() -> None:
    with pytest.raises(ParameterError, match=r"threat='poison' is unknown; use one of 'insert\+delete'"):
        Threat.of("poison")
    with pytest.raises(ParameterError, match="unit='cell' is unknown; use one of 'row', 'source'"):
        Threat.of("delete", "cell")


def test_what_a_threat_allows() -> None:
    assert (Threat("insert").inserts, Threat("insert").deletes) == (True, False)
    assert (Threat("insert+delete").inserts, Threat("insert+delete").deletes) == (True, True)
    assert (Threat("relabel").inserts, Threat("relabel").deletes) == (False, False)
    assert str(Threat("delete")) == "delete of rows"
