"""Settings that certify the data sets of the evaluation well: one for small radii and one for large ones each.

All of them certify insertions and deletions, trust no row, and were fixed on splits other than those they are
reported on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from poisonproof.datasets.load import recipe
from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from poisonproof.neighbors.metric import MetricName
    from poisonproof.threat import Moves

__all__ = ["Preset", "Radii", "preset", "preset_for", "presets"]

Radii = Literal["low", "high"]
Kind = Literal["kernel ridge blocks", "neighbors", "kernel median"]


@dataclass(frozen=True)
class Preset:
    """A model in words: what :meth:`build` makes of it, for the encoding ``ours``.

    Parameters
    ----------
    dataset : str
        The data set.
    radii : {"low", "high"}
        What it is good for.
    kind : {"kernel ridge blocks", "neighbors", "kernel median"}
        Which model.
    size : int
        Blocks, or neighbours; 0 for a kernel median, which needs neither.
    up_to, up_to_deleted : int
        For presets of low radii, the largest of them; beyond, the other preset is to be used. The second is for
        attackers who can only delete.
    gamma, alpha, linear : float
        Kernel and penalty of kernel ridge blocks.
    metric : str
        What near means.
    factors : mapping of str to float
        What the recipe's weights of these columns are multiplied by.
    offset : bool
        Whether the recipe's declared offset is used.
    same_group : bool
        Whether rows of one country count as alike (life's kernel median).
    scale, bandwidth : float
        How much, and how far, other rows count there.
    empty_value : float
        Declared prediction, of what the offset leaves, where there is nothing to predict from.
    """

    dataset: str
    radii: Radii
    kind: Kind
    size: int
    up_to: int = 0
    up_to_deleted: int = 0
    gamma: float = 0.3
    alpha: float = 0.3
    linear: float = 1.0
    metric: MetricName = "manhattan"
    factors: Mapping[str, float] = field(default_factory=dict)
    offset: bool = False
    same_group: bool = False
    scale: float = 0.5
    bandwidth: float = 1.05
    empty_value: float = 0.0

    def build(self, size: int | None = None, threat: Moves = "insert+delete", **settings: Any) -> Any:  # noqa: ANN401  one of three models
        """The model, not fitted; fit it to rows in the encoding ``ours``.

        Parameters
        ----------
        size : int, optional
            Another number of blocks or neighbours.
        threat : {"insert+delete", "delete", "insert", "relabel"}
            What the attacker may do. Blocks are weighed, at up to four rows each, where that is deleting.
        **settings
            Further parameters of the model, such as ``n_jobs``.
        """
        chosen = self if size is None else replace(self, size=size)
        encoding = recipe(chosen.dataset).ours
        shared = {"offset": encoding.offset_function() if chosen.offset else None, "threat": threat} | settings
        weights = encoding.factors(chosen.factors)
        makers = {"kernel ridge blocks": _blocks, "neighbors": _neighbors, "kernel median": _kernel_median}
        return makers[chosen.kind](chosen, weights, shared)


def preset(name: str, radii: Radii) -> Preset:
    """The settings for a data set and the radii of interest.

    Examples
    --------
    >>> preset("spambase", "high").kind, preset("spambase", "high").size
    ('neighbors', 1001)
    """
    if radii not in get_args(Radii):
        raise ParameterError(f"radii={radii!r} is unknown; use 'low' or 'high'")
    found = [each for each in _PRESETS if (each.dataset, each.radii) == (name, radii)]
    if not found:
        known = ", ".join(map(repr, dict.fromkeys(each.dataset for each in _PRESETS)))
        raise ParameterError(f"no preset is known for data set {name!r}; there are some for {known}")
    return found[0]


def preset_for(name: str, radius: int, *, deleted: bool = False) -> Preset:
    """The settings to be used for one radius, under insertions and deletions, or under deletions only.

    Examples
    --------
    >>> preset_for("spambase", 15).radii, preset_for("spambase", 16).radii
    ('low', 'high')
    >>> preset_for("spambase", 16, deleted=True).radii
    'low'
    """
    low = preset(name, "low")
    return low if radius <= (low.up_to_deleted if deleted else low.up_to) else preset(name, "high")


def presets() -> tuple[Preset, ...]:
    """All presets."""
    return _PRESETS


def _blocks(chosen: Preset, weights: Any, shared: dict[str, Any]) -> Any:  # noqa: ANN401  arrays and models
    from poisonproof.ensemble import CertifiedRegressor  # noqa: PLC0415  models only where they are built
    from poisonproof.learners import KernelRidge  # noqa: PLC0415

    learner = KernelRidge(alpha=chosen.alpha, gamma=chosen.gamma, linear=chosen.linear, weights=weights)
    own = {"max_cost": _DELETED_COST if shared["threat"] == "delete" else 1, "empty_value": chosen.empty_value}
    return CertifiedRegressor(learner, chosen.size, **own | shared)


def _neighbors(chosen: Preset, weights: Any, shared: dict[str, Any]) -> Any:  # noqa: ANN401  arrays and models
    from poisonproof.neighbors import CertifiedNeighborsRegressor  # noqa: PLC0415  models only where they are built

    return CertifiedNeighborsRegressor(chosen.size, metric=chosen.metric, weights=weights, **shared)


def _kernel_median(chosen: Preset, weights: Any, shared: dict[str, Any]) -> Any:  # noqa: ANN401  arrays and models
    from poisonproof.datasets.recipes.life import SameCountry  # noqa: PLC0415  models only where they are built
    from poisonproof.neighbors import CertifiedKernelRegressor  # noqa: PLC0415

    near: tuple[float, Any] = (chosen.scale, "tricube")
    similarity = [(1.0, SameCountry()), near] if chosen.same_group else [near]
    return CertifiedKernelRegressor(
        similarity, chosen.bandwidth, metric=chosen.metric, weights=weights, empty_value=chosen.empty_value, **shared
    )


# Columns of Austin that say little about the price of a home, and those that say where it is.
_REST: Final = (
    "numOfBedrooms", "numOfStories", "garageSpaces", "numOfPatioAndPorchFeatures", "numOfWaterfrontFeatures",
    "numOfSecurityFeatures", "numOfAppliances", "numOfCommunityFeatures", "numOfWindowFeatures", "time of sale",
    "numPriceChanges", "numOfPhotos", "hasAssociation", "hasCooling", "hasGarage", "hasHeating", "hasSpa", "hasView",
)  # fmt: skip
_LESS: Final = dict.fromkeys(_REST, 0.3)
_PLACE: Final = ("latitude", "longitude")
# Another country adds 2 to the distance, each year between two rows 0.06.
_PANEL: Final = {"Year": 9 / 7, "Status": 0.0}
_WITHIN_COUNTRIES: Final = {"Country": 0.0, "Status": 0.0}

_DELETED_COST: Final = 4

# About four to eight blocks for each modification are best; these few are for the least radii, and the neighbours
# take over early. More blocks, by ``build(size=75)`` for instance, certify more in between.
_PRESETS: Final = (
    Preset(
        "ames", "low", "kernel ridge blocks", 25, 6, 10, gamma=0.1, alpha=0.02, linear=2.0, empty_value=12.0,
        factors=dict.fromkeys(("Overall Qual", "baths", "Garage Cars"), 0.5)
        | dict.fromkeys(("Gr Liv Area", "Overall Cond", "Lot Area"), 2.0),
    ),
    Preset("ames", "high", "neighbors", 401, offset=True),
    Preset(
        "austin", "low", "kernel ridge blocks", 51, 12, 12, empty_value=13.0,
        factors=_LESS | dict.fromkeys(_PLACE, 2.0),
    ),
    Preset(
        "austin", "high", "neighbors", 1201, offset=True,
        factors=_LESS | dict.fromkeys(_PLACE, 3.0) | {"avgSchoolRating": 1.5},
    ),
    Preset(
        "diamonds", "low", "kernel ridge blocks", 801, 200, 200, gamma=0.5, alpha=0.03, linear=4.0, offset=True,
        factors=dict.fromkeys(("cut", "color", "clarity", "table"), 0.5), empty_value=8.5,
    ),
    Preset("diamonds", "high", "neighbors", 5001, factors={"carat": 0.5, "volume": 0.5}, offset=True),
    Preset(
        "life", "low", "kernel median", 0, 12, 12, same_group=True, offset=True, empty_value=70.0,
        factors=_WITHIN_COUNTRIES,
    ),
    Preset("life", "high", "neighbors", 501, factors=_PANEL),
    Preset("spambase", "low", "kernel ridge blocks", 75, 15, 30, empty_value=-1.0),
    Preset("spambase", "high", "neighbors", 1001, metric="euclidean"),
)  # fmt: skip
