"""The data sets of the evaluation, how their rows become numbers, and the figures published for them."""

from poisonproof.datasets.bundled import Dataset, load_diamonds
from poisonproof.datasets.fetch import add_file, data_file, data_folder, fetch_file
from poisonproof.datasets.load import load_dataset, recipe
from poisonproof.datasets.presets import Preset, preset, preset_for, presets
from poisonproof.datasets.published import (
    PublishedAccuracy,
    PublishedMedian,
    PublishedSeconds,
    PublishedSetup,
    published_accuracy,
    published_median,
    published_seconds,
    published_settings,
    published_setup,
)
from poisonproof.datasets.registry import Source, source, sources

__all__ = [
    "Dataset",
    "Preset",
    "PublishedAccuracy",
    "PublishedMedian",
    "PublishedSeconds",
    "PublishedSetup",
    "Source",
    "add_file",
    "data_file",
    "data_folder",
    "fetch_file",
    "load_dataset",
    "load_diamonds",
    "preset",
    "preset_for",
    "presets",
    "published_accuracy",
    "published_median",
    "published_seconds",
    "published_settings",
    "published_setup",
    "recipe",
    "source",
    "sources",
]
