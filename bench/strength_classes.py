"""How strong certified classifiers are: Spambase against the published figures, and digits by both rules.

Every trial is one line of ``bench/strength_classes.json``; trials that are there already are not run again.

    python bench/strength_classes.py            # run what is missing
    python bench/strength_classes.py --docs     # put the tables into docs/classification.md
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from bench.declared_tables import HOME, PLAIN, PREPARED
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from poisonproof import CertifiedClassifier, CertifiedNeighborsClassifier, CertifiedRegressor, KernelRidge
from poisonproof.datasets import published_accuracy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Radii = NDArray[np.int64]
    Trial = dict[str, Any]

RESULTS: Final = Path(__file__).with_suffix(".json")
DOCS: Final = Path(__file__).parents[1] / "docs" / "classification.md"
TRIALS: Final = 10
PENALTIES: Final = {25: 3.16e-3, 151: 3.16e-6, 301: 3.16e-3}  # the paper's, by number of submodels
FEATURES: Final = ("as they are", "in [0, 1]")
FEW: Final = 20  # up to so many modifications few kernel ridges are the strongest of our models, beyond it neighbours
KERNEL_RIDGE: Final = {f"kernel ridge, {count} submodels": count for count in (75, 601)}
NEIGHBORS: Final = "1,001 neighbours"
BEST: Final = (*KERNEL_RIDGE, NEIGHBORS)
ENSEMBLES: Final = ("PCR", "OCR", "W-PCR", "W-OCR")
DIGIT_LEARNERS: Final = {
    "ridge": RidgeClassifier(alpha=1.0),
    "naive Bayes": GaussianNB(var_smoothing=0.03),
    "neighbours": KNeighborsClassifier(15, weights="distance"),
}
DIGIT_SUBMODELS: Final = (15, 25, 51)
RULES: Final = ("plurality", "runoff")


def split_of(n_rows: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """One tenth to test on, and the rest to train on."""
    shuffled = np.random.default_rng(1000 + seed).permutation(n_rows)
    return shuffled[: n_rows // 10], shuffled[n_rows // 10 :]


def as_published(features: str, n_submodels: int, seed: int) -> Radii:
    """The paper's weighted ensembles of ridge, against deletions: radii of the true classes."""
    table = PLAIN["spambase"]()
    X = table.X if features == FEATURES[0] else np.clip(table.X / table.ranges[:, 1], 0, 1)
    y = table.y.astype(int)
    test, train = split_of(len(y), seed)
    learner = RidgeClassifier(PENALTIES[n_submodels])
    model = CertifiedClassifier(learner, n_submodels, classes=[-1, 1], threat="delete", max_cost=2)
    return model.fit(X[train], y[train]).certify(X[test], y[test]).radius


def at_best(kind: str, seed: int) -> Radii:
    """Declared features, insertions and deletions: radii of the true classes."""
    table = PREPARED["spambase"]()
    test, train = split_of(len(table.y), seed)
    if kind == NEIGHBORS:
        near = CertifiedNeighborsClassifier(1001, ranges=table.ranges, weights=table.weights, classes=[-1, 1])
        near.fit(table.X[train], table.y[train].astype(int))
        return near.certify(table.X[test], table.y[test].astype(int)).radius
    low, width = table.ranges[:, 0], table.ranges[:, 1] - table.ranges[:, 0]
    X = table.weights * np.clip((table.X - low) / width, 0, 1)
    model = CertifiedRegressor(KernelRidge(alpha=0.3, gamma=0.3), KERNEL_RIDGE[kind]).fit(X[train], table.y[train])
    return model.certify(X[test], lower=table.lower[test], upper=table.upper[test]).radius


def of_digits(learner: str, n_submodels: int, rule: str, seed: int) -> Radii:
    """Insertions and deletions: radii of the true classes."""
    X, y = load_digits(return_X_y=True)
    test, train = split_of(len(y), seed)
    model = CertifiedClassifier(DIGIT_LEARNERS[learner], n_submodels, classes=range(10), rule=rule)  # type: ignore[arg-type]
    return model.fit(X[train] / 16, y[train]).certify(X[test] / 16, y[test]).radius


def trials() -> Iterator[tuple[Trial, Callable[[], Radii]]]:
    """What there is to run, each with its name."""
    for seed in range(TRIALS):
        for learner in DIGIT_LEARNERS:
            for count in DIGIT_SUBMODELS:
                for rule in RULES:
                    name = {"case": "digits", "learner": learner, "submodels": count, "rule": rule, "trial": seed}
                    yield name, lambda a=(learner, count, rule, seed): of_digits(*a)  # type: ignore[misc]
        if not HOME.is_dir():
            continue
        for kind in BEST:
            yield {"case": "best", "model": kind, "trial": seed}, lambda a=(kind, seed): at_best(*a)  # type: ignore[misc]
        for features in FEATURES:
            for count in PENALTIES:
                name = {"case": "as published", "features": features, "submodels": count, "trial": seed}
                yield name, lambda a=(features, count, seed): as_published(*a)  # type: ignore[misc]


def run() -> None:
    """Run the trials that are missing, and keep each as soon as it is done."""
    done = {json.dumps(record["name"]) for record in records()}
    for name, radii_of in trials():
        if json.dumps(name) in done:
            continue
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            radii = radii_of()
        record = {"name": name, "radii": radii.tolist(), "cpu_seconds": round(time.process_time() - start, 2)}
        with RESULTS.open("a") as file:
            file.write(json.dumps(record) + "\n")


def records() -> list[Trial]:
    """The trials that were run."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def chosen(**wanted: object) -> list[Radii]:
    """The radii of the trials of this name."""
    return [
        np.array(record["radii"])
        for record in records()
        if all(record["name"].get(key) == value for key, value in wanted.items())
    ]


def share(of: list[Radii], radius: int) -> float:
    """Certified accuracy at a radius in percent, mean over the trials."""
    return 100 * float(np.mean([np.mean(radii >= radius) for radii in of]))


def table(head: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table."""
    lines = [head, ["---:"] * len(head)]
    lines += [[f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table_as_published() -> str:
    """The paper's weighted ensembles, as published and here."""
    rows: list[list[Any]] = []
    for figure in published_accuracy("spambase", "W-PCR"):
        if figure.n_partitions not in PENALTIES:
            continue
        runs = [chosen(case="as published", features=what, submodels=figure.n_partitions) for what in FEATURES]
        theirs = f"{100 * figure.mean:.1f} ± {100 * figure.sd:.1f}"
        rows.append([figure.n_partitions, figure.radius, theirs, *(share(of, figure.radius) for of in runs)])
    return table(["submodels", "radius", "W-PCR, published", *(f"features {what}" for what in FEATURES)], rows)


def table_best() -> str:
    """Our models beside the best published figures at each radius."""
    figures = [figure for figure in published_accuracy("spambase") if figure.n_partitions in PENALTIES]
    rows: list[list[Any]] = []
    for radius in sorted({figure.radius for figure in figures}):
        here = [figure for figure in figures if figure.radius == radius]
        ensembles = 100 * max(figure.mean for figure in here if figure.method in ENSEMBLES)
        ours = [share(chosen(case="best", model=kind), radius) for kind in BEST]
        used = BEST[0] if radius <= FEW else NEIGHBORS
        rows.append([radius, ensembles, 100 * max(figure.mean for figure in here), *ours, used])
    return table(["radius", "best ensemble, published", "best of all, published", *BEST, "to be used"], rows)


def table_digits() -> str:
    """Accuracy and mean radius of both rules."""
    rows: list[list[Any]] = []
    for learner in DIGIT_LEARNERS:
        for count in DIGIT_SUBMODELS:
            runs = [chosen(case="digits", learner=learner, submodels=count, rule=rule) for rule in RULES]
            means = [float(np.mean([radii.mean() for radii in of])) for of in runs]
            rows.append([learner, count, *(share(of, 0) for of in runs), *(f"{mean:.2f}" for mean in means)])
    names = [f"{what}, {rule}" for what in ("accuracy", "mean radius") for rule in ("plurality", "run-off")]
    return table(["learner", "submodels", *names], rows)


TABLES: Final = {"as published": table_as_published, "best": table_best, "digits": table_digits}


def write_docs() -> None:
    """Put the tables where the page marks them."""
    text = DOCS.read_text(encoding="utf-8")
    for name, render in TABLES.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, _, rest = text.partition(begin)
        after = rest.partition(end)[2]
        text = f"{before}{begin}\n{render()}\n{end}{after}"
    DOCS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if "--docs" in sys.argv[1:]:
        write_docs()
    else:
        run()
