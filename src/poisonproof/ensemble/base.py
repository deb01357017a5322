"""What certified ensembles share: checked parameters, blocks, and submodels trained on them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from poisonproof.ensemble.cut import blocks_of_rows, blocks_per_modification, cut
from poisonproof.errors import ParameterError, ParameterTypeError, ThreatError
from poisonproof.layout import LAYOUTS, make_layout
from poisonproof.partition import canonical, check_key
from poisonproof.settled import Settled
from poisonproof.threat import Threat
from poisonproof.votes import each, fit_submodel, make_deterministic, report_constants

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.costs import CostEngine
    from poisonproof.costs.protocol import Vote
    from poisonproof.layout import Layout
    from poisonproof.partition import PartitionBy
    from poisonproof.threat import Moves
    from poisonproof.votes import Submodel

    Rows = tuple[NDArray[np.float64], NDArray[np.float64]]

__all__ = ["BlockEnsemble"]

_ASKED: Final = 32
_MOST_DIFFERENT: Final = 0.1


def _vote_of(submodel: Submodel) -> Vote:
    return submodel.vote


class BlockEnsemble(Settled):
    """Submodels trained on blocks of rows that a keyed hash puts together."""

    _read_with: ClassVar[tuple[str, ...]] = ("max_cost", "threat", "partition_by", "key", "rule", "classes")
    estimator: Any
    n_partitions: int
    spread: int
    layout: Any
    max_cost: int
    threat: Moves
    partition_by: PartitionBy
    key: int
    n_jobs: int | None
    threat_: Threat

    def blocks(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> NDArray[np.int64]:
        """The block of each row, ``(n_rows,)``: a function of the row and the key alone."""
        rows, labels = self._checked_rows(X), None if y is None else self._hashed_labels(np.asarray(y))
        return blocks_of_rows(rows, labels, groups, self.n_blocks_, partition_by=self.partition_by, key=self.key)

    def _instead(self, constant: float) -> str:
        """What submodels without an estimator do."""
        return f"vote the declared empty_value={constant:g}"

    def _hashed_labels(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """What of a label goes into the hash, where labels do: a function of the label alone."""
        return canonical(y)

    def _checked_layout(self, *, odd: bool) -> Layout:
        if self.layout is None:
            named = ", ".join(map(repr, LAYOUTS))
            raise ParameterTypeError(f"layout=None must be one of {named}, or a matrix (n_submodels, n_blocks)")
        if isinstance(self.layout, str):
            layout = make_layout(self.n_partitions, self.spread, self.layout, self.key, odd=odd and self.spread != 1)
        else:
            layout = make_layout(self.n_partitions, incidence=self.layout, odd=odd)
        if odd and layout.n_submodels % 2 == 0:
            near = f"{layout.n_submodels - 1} or {layout.n_submodels + 1}"
            raise ParameterError(
                f"n_partitions={layout.n_submodels} must be odd so that the median is a vote; use {near}"
            )
        return layout

    def _checked_threat(self) -> Threat:
        if self.partition_by not in ("features", "row", "source"):
            raise ParameterError(f"partition_by={self.partition_by!r} is unknown; use 'features', 'row' or 'source'")
        if isinstance(self.max_cost, bool) or not isinstance(self.max_cost, int | np.integer):
            raise ParameterTypeError(f"max_cost={self.max_cost!r} must be an integer")
        if not 1 <= self.max_cost <= 100:
            raise ParameterError(f"max_cost={self.max_cost} must be from 1 to 100")
        check_key(self.key)
        threat = Threat.of(self.threat, "source" if self.partition_by == "source" else "row")
        if self.max_cost > 1 and blocks_per_modification(threat, self.partition_by) > 1:
            # A relabelled row that changes blocks is a deletion here and an insertion there, not a changed label.
            raise ThreatError(
                f"max_cost={self.max_cost} with threat='relabel' needs rows that stay in their block; "
                "use partition_by='features', or max_cost=1"
            )
        return threat

    def _train(  # noqa: PLR0917  one table and what to do with it
        self,
        template: Any,  # noqa: ANN401  any scikit-learn estimator
        rows: NDArray[np.float64],
        targets: NDArray[np.float64],
        labels: NDArray[np.float64],
        groups: ArrayLike | None,
        layout: Layout,
        engine: CostEngine | None,
        constant: float,
        choice: Callable[[Submodel], Any] = _vote_of,
    ) -> None:
        """Cut the rows by content and label, and train every submodel to predict ``targets``.

        ``choice`` makes of a submodel what the engine asks its replicas for: their votes, unless it says otherwise.
        """
        threat = self._checked_threat()
        pieces = cut(rows, labels, targets, groups, layout, threat, partition_by=self.partition_by, key=self.key)
        rows, targets = rows[pieces.order], targets[pieces.order]
        self.layout_, self.incidence_ = layout, layout.incidence
        self.n_blocks_, self.n_submodels_ = layout.n_blocks, layout.n_submodels
        self.n_units_, self.capacity_, self.caps_ = pieces.n_units, pieces.capacity, pieces.caps
        train = partial(_train_one, make_deterministic(template), constant, engine, choice)
        tables = [(rows[chosen], targets[chosen]) for chosen in pieces.members]
        fitted = each(train, tables, self.n_jobs, "fitting submodels")
        self.submodels_: list[Submodel] = [submodel for submodel, _ in fitted]
        self.prepared_: list[object] = [prepared for _, prepared in fitted]
        report_constants(self.submodels_, len(targets), self._instead(constant))
        _check_places(self.submodels_, tables)


def _check_places(submodels: list[Submodel], tables: list[Rows]) -> None:
    """An error where an estimator is seen to vote by the places of rows: it draws random numbers to predict, say."""
    # Sound only because a row has the same vote in every batch. All submodels are of one kind, so one is asked.
    fitted = (which for which, submodel in enumerate(submodels) if submodel.estimator is not None)
    first = next(fitted, None)
    if first is None:
        return
    rows = tables[first][0][:_ASKED]
    votes, turned = each(submodels[first].vote, [rows, rows[::-1]], None, "asking twice")
    # One rounding may make another class the best, so a few rows may differ.
    if np.mean(~np.isclose(votes, turned[::-1])) > _MOST_DIFFERENT:
        raise ParameterError(
            f"estimator={submodels[first].estimator!r} gives a row another prediction in another place of the table, "
            "so no vote could be certified; use an estimator that draws no random numbers to predict"
        )


def _train_one(
    template: Any,  # noqa: ANN401  any scikit-learn estimator
    constant: float,
    engine: CostEngine | None,
    choice: Callable[[Submodel], Any],
    table: Rows,
) -> tuple[Submodel, object]:
    """A submodel, and what the engine keeps of its rows."""
    X, y = table
    prepared = None if engine is None else engine.prepare(partial(_vote_function, template, constant, choice), X, y)
    return fit_submodel(template, constant, X, y), prepared


def _vote_function(
    template: Any,  # noqa: ANN401  any scikit-learn estimator
    constant: float,
    choice: Callable[[Submodel], Any],
    X: NDArray[np.float64],
    y: NDArray[np.float64],
) -> Vote:
    return choice(fit_submodel(template, constant, X, y))
