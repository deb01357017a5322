"""The models of each method, with the settings of the paper, and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sklearn.linear_model import Ridge

from poisonproof.datasets import preset, published_settings, published_setup
from poisonproof.ensemble import CertifiedRegressor
from poisonproof.learners import BoostedTreesRegressor
from poisonproof.neighbors import CertifiedNeighborsRegressor

if TYPE_CHECKING:
    from poisonproof.datasets.recipes import Prepared
    from poisonproof.datasets.recipes.recipe import EncodingName
    from poisonproof.paper.cells import Cell

__all__ = ["encoding_of", "learner_of", "model_of"]

# Declared votes of blocks without rows, on the scale that is certified.
_EMPTY_VALUES: Final = {"ames": 12.0, "austin": 13.0, "diamonds": 8.5, "weather": 10.0, "life": 70.0, "spambase": -1.0}

# The paper mixes rows without saying how many times.
_MIXTURES_OF_A_ROW: Final = 8
_MIXTURES_OF_A_BLOCK: Final = 200


def encoding_of(cell: Cell) -> EncodingName:
    """Which features the method of a cell sees."""
    return "ours" if cell.method.startswith("ours") else "plain"


def model_of(cell: Cell, prepared: Prepared, n_train: int) -> Any:  # noqa: ANN401  one of four models
    """The model of a cell, not fitted."""
    match cell.method:
        case "baseline":
            return learner_of(cell.dataset, 1, n_train)
        case "kNN-CR":
            return CertifiedNeighborsRegressor(half_of(n_train), ranges=prepared.ranges, method="paper")
        case "ours low" | "ours low deleted" | "ours high" | "ours high deleted":
            chosen = preset(cell.dataset, "low" if "low" in cell.method else "high")
            return chosen.build(threat="delete" if "deleted" in cell.method else "insert+delete")
    return CertifiedRegressor(
        learner_of(cell.dataset, cell.n_partitions, n_train),
        cell.n_partitions,
        spread=published_setup(cell.dataset).spread if "OCR" in cell.method else 1,
        layout="random",
        max_cost=2 if cell.method.startswith("W-") else 1,
        threat="delete" if cell.method.startswith("W-") else "insert+delete",
        empty_value=_EMPTY_VALUES[cell.dataset],
    )


def learner_of(dataset: str, n_partitions: int, n_train: int) -> Any:  # noqa: ANN401  one of two learners
    """The learner of one submodel.

    Examples
    --------
    >>> learner_of("diamonds", 151, 48_546)
    Ridge(alpha=0.0601)
    >>> learner_of("ames", 25, 2_637).mixup
    0.0363
    """
    settings = published_settings(dataset, n_partitions)
    if published_setup(dataset).submodel == "ridge":
        # Solved exactly: tolerances and iterations are of no account. All rows and a tiny penalty are ill-conditioned.
        return Ridge(settings["weight_decay"], solver="svd" if n_partitions == 1 else "auto")
    return BoostedTreesRegressor(
        int(settings["trees"]),
        learning_rate=settings["learning_rate"],
        max_depth=int(settings["max_depth"]),
        reg_lambda=settings["weight_decay"],
        min_split_loss=settings["min_split_loss"],
        mixup=_mixtures_of_a_pair(n_train / n_partitions) if n_partitions > 1 else 0.0,
    )


def _mixtures_of_a_pair(n_rows: float) -> float:
    """How many mixtures of each pair make up the declared number in a submodel of so many rows."""
    n_pairs = n_rows * max(n_rows - 1, 1) / 2
    return float(f"{min(_MIXTURES_OF_A_ROW * n_rows, _MIXTURES_OF_A_BLOCK) / n_pairs:.3g}")


def half_of(n_train: int) -> int:
    """The odd number nearest to half of the rows, the larger one of two.

    Examples
    --------
    >>> half_of(10), half_of(8), half_of(7)
    (5, 5, 3)
    """
    return 2 * (n_train // 4) + 1
