"""The registry says of each data set what the evaluation needs."""

from __future__ import annotations

import re

import pytest

from poisonproof.datasets import Source, published_accuracy, source, sources
from poisonproof.errors import ParameterError

NAMES = ("ames", "austin", "diamonds", "weather", "life", "spambase")


def test_every_data_set_of_the_paper_is_there() -> None:
    assert tuple(each.name for each in sources()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_entries_are_complete(name: str) -> None:
    entry = source(name)
    assert isinstance(entry, Source)
    assert entry.page.startswith("https://")
    assert entry.licence
    assert entry.files
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in entry.sha256)
    assert entry.rows > 2000
    # Somebody without the file can come by it: by an address, or by what to take from the page.
    assert (entry.url is None) != (entry.get is None)
    assert entry.url is None or entry.url.startswith("https://")


@pytest.mark.parametrize("name", NAMES)
def test_thresholds_are_the_published_ones(name: str) -> None:
    entry, published = source(name), source(name).published
    number = float(re.findall(r"[\d.]+", published.error_threshold)[0])
    assert entry.within == (number / 100 if "%" in published.error_threshold else number)
    assert entry.relative == ("%" in published.error_threshold)
    assert (entry.transform == "log") == entry.relative
    # The paper's numbers of submodels and spreads come from its own tables.
    assert set(published.n_partitions) == {figure.n_partitions for figure in published_accuracy(name)} - {1}
    assert published.spread > 1


def test_only_weather_is_thinned_and_only_diamonds_come_along() -> None:
    assert {each.name: each.every for each in sources() if each.every > 1} == {"weather": 10}
    assert [each.name for each in sources() if each.bundled] == ["diamonds"]
    assert [each.name for each in sources() if not each.sha256] == ["weather"]


def test_unknown_names_list_those_there_are() -> None:
    with pytest.raises(ParameterError, match="no data set 'aims'; there are 'ames', 'austin'"):
        source("aims")
