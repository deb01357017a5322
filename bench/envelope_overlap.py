"""Whether overlapping blocks certify more than disjoint ones when each may choose its number of partitions.

``measure`` fits and certifies whatever the file of results does not have yet, ``render`` writes the tables into
docs/overlap.md and draws docs/overlap.png. The tables of houses, countries and mail are looked for in the folder that
``POISONPROOF_DATA`` names.

    python bench/envelope_overlap.py [measure] [render]
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from poisonproof import CertifiedRegressor
from poisonproof.costs import Reach
from poisonproof.datasets import load_dataset
from poisonproof.learners import KernelRidge
from poisonproof.median import Ballot, radii

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from poisonproof.datasets.recipes import Prepared

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "envelope_overlap.json"
PAGE: Final = HERE.parent / "docs" / "overlap.md"
PICTURE: Final = HERE.parent / "docs" / "overlap.png"
BEGIN, END = "<!-- figures: made by bench/envelope_overlap.py -->", "<!-- end of figures -->"

TEST_ROWS: Final = 200
MAX_COST: Final = 2
# fmt: off
RADII: Final = (
    0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, 48, 58, 70, 85, 100, 120, 145, 175, 210, 250, 300, 360, 430,
    520, 620, 750, 900, 1100, 1300, 1600, 2000, 2500, 3000,
)
SHOWN: Final = (1, 3, 5, 10, 15, 22, 33, 48, 70, 100, 145, 210, 300, 430, 620, 900, 1300)
SMALL: Final = (5, 9, 15, 25, 35, 51, 75, 101, 151, 201, 301, 401, 601, 901, 1201)
LARGE: Final = (51, 101, 151, 251, 401, 701, 1201, 2001, 3001, 4501)
# Further choices of disjoint blocks, which are cheap: where one of them is the best, there is nothing to compare with.
MORE: Final = {SMALL: (1601, 2001), LARGE: (201, 551, 901, 6001, 8001)}
# fmt: on
COMMON: Final = 151  # partitions that every design is tried with
MATTERS: Final = 0.1  # of the rows: where disjoint blocks certify fewer, a radius is not counted
WORTHWHILE: Final = 0.03


@dataclass(frozen=True)
class Case:
    """A table, and everything about its submodels but how many there are.

    Parameters
    ----------
    title, data : str
        What to call it, and the data set.
    alpha, gamma : float
        Penalty, and rate of the kernel.
    offset : bool
        Whether the declared offset is taken off the target.
    empty_value : float
        Declared vote of a block without rows.
    partitions : tuple of int
        The choices of ``n_partitions``.
    """

    title: str
    data: str
    alpha: float
    gamma: float
    offset: bool
    empty_value: float
    partitions: tuple[int, ...]

    def learner(self, table: Prepared) -> KernelRidge:
        """The submodel."""
        return KernelRidge(alpha=self.alpha, gamma=self.gamma, weights=table.weights, ranges=table.ranges)


class Design(NamedTuple):
    """A layout, on how many splits it is tried, and with which choices of ``n_partitions``: none means all."""

    title: str
    layout: str
    spread: int
    splits: int
    only: tuple[int, ...] = ()


CASES: Final = (
    Case("ames", "ames", 0.01, 0.03, True, 6.1, SMALL),
    Case("life", "life", 0.03, 0.1, False, 70.0, SMALL),
    Case("diamonds", "diamonds", 0.03, 0.3, True, 8.5, LARGE),
    Case("spambase", "spambase", 0.3, 0.3, False, 0.0, SMALL),
)
DISJOINT: Final = Design("disjoint", "disjoint", 1, 2)
# The random layout takes a search for each row, so it is tried on fewer of them and with fewer choices.
DESIGNS: Final = (
    DISJOINT,
    Design("STS(9)", "triples", 4, 2),
    Design("pairs", "paired", 5, 2),
    Design("random", "random", 4, 1, (15, 151)),
)


class Run(NamedTuple):
    """One ensemble on one split."""

    case: Case
    design: Design
    n_partitions: int
    split: int

    @property
    def key(self) -> str:
        """What it is called in the file of results."""
        return f"{self.case.title} | {self.design.title} | {self.n_partitions} | {self.split}"


Results = dict[str, dict[str, Any]]


def runs() -> Iterator[Run]:
    """All ensembles, the cheap designs first."""
    for design in DESIGNS:
        for case in CASES:
            for n_partitions in choices(case, design):
                yield from (Run(case, design, n_partitions, split) for split in range(design.splits))


def choices(case: Case, design: Design) -> tuple[int, ...]:
    """The numbers of partitions that a design is tried with."""
    more = MORE[case.partitions] if design is DISJOINT else ()
    return tuple(one for one in (*case.partitions, *more) if not design.only or one in design.only)


@cache
def table_of(data: str) -> Prepared:
    """The rows of a data set in declared features."""
    return load_dataset(data, "ours")


def measured(run: Run) -> dict[str, Any]:
    """What an ensemble certifies, at both costs, and what it took to train and to certify."""
    case, design, table = run.case, run.design, table_of(run.case.data)
    order = np.random.default_rng(1000 + run.split).permutation(len(table))
    test, train = order[:TEST_ROWS], order[len(table) // 10 :]
    model = CertifiedRegressor(
        case.learner(table),
        run.n_partitions,
        spread=design.spread,
        layout="triples" if design is DISJOINT else design.layout,
        max_cost=MAX_COST,
        threat="delete",
        offset=table.offset if case.offset else None,
        empty_value=case.empty_value,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*empty_value.*")  # small blocks are part of the question
        start = process_time()
        model.fit(table.X[train], table.y[train])
    fitted = process_time()
    certificate = model.certify(table.X[test], table.lower[test], table.upper[test])
    done = process_time()
    sizes = np.bincount(model.blocks(table.X[train]), minlength=model.n_blocks_)
    facts = {
        "fits": model.n_submodels_, "rows_seen": int((model.incidence_ @ sizes).sum()), "rows": len(train),
        "fit_s": round(fitted - start, 2), "certify_s": round(done - fitted, 2),
    }  # fmt: skip
    return facts | {"costs": counts_of(certificate.radius), "unit": counts_of(radii_at_unit_cost(model, table, test))}


def radii_at_unit_cost(model: CertifiedRegressor, table: Prepared, test: NDArray[np.intp]) -> NDArray[np.int64]:
    """What the same votes withstand if every touched one is lost; no other ensemble is needed for it."""
    votes = model.votes(table.X[test])[None]
    incidence = None if model.layout_.is_disjoint else model.incidence_
    ballot = Ballot(Reach(votes, votes), incidence, model.capacity_, model.n_units_, model.caps_)
    found = radii(ballot, table.lower[test], table.upper[test])
    return np.where(found.unbreakable, model.n_units_, found.radius)


def counts_of(radius: NDArray[np.int64]) -> list[int]:
    """How many rows have at least each radius, without the zeros at the end."""
    counts = [int((radius >= wanted).sum()) for wanted in RADII]
    return counts[: 1 + max((place for place, count in enumerate(counts) if count), default=-1)]


def measure() -> None:
    """Measure what is not in the file yet, and write each result at once."""
    results = stored()
    for run in runs():
        if run.key not in results:
            results[run.key] = measured(run)
            store(results)
            print(json.dumps({"run": run.key} | results[run.key]), flush=True)


def settings() -> dict[str, Any]:
    """What all results depend on: results under other settings are not used again."""
    cases = {
        case.title: {name: value for name, value in asdict(case).items() if name != "partitions"} for case in CASES
    }
    return {"radii": list(RADII), "test_rows": TEST_ROWS, "max_cost": MAX_COST, "threat": "delete", "cases": cases}


def stored() -> Results:
    """The results so far under the same settings."""
    if not RESULTS.exists():
        return {}
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    found: Results = content["runs"] if content["settings"] == settings() else {}
    return found


def store(results: Results) -> None:
    """Write the file, one line for each result."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(one, separators=(',', ':'))}" for key, one in results.items())
    text = f'{{"settings": {json.dumps(settings())},\n"runs": {{\n{lines}\n}}}}\n'
    partial = RESULTS.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(RESULTS)


class Envelope(NamedTuple):
    """The most that any choice certifies at each radius, ``(n_radii,)``, and which choice that is."""

    shares: NDArray[np.float64]
    best: NDArray[np.int64]


def envelope(
    results: Results, case: Case, design: Design, costs: str, *, tried: Sequence[int] = (), splits: int = 0
) -> Envelope:
    """The envelope of a design, of all its choices and splits or of some."""
    tried, splits = tried or choices(case, design), splits or design.splits
    shares = np.zeros((len(tried), len(RADII)))
    for row, n_partitions in zip(shares, tried, strict=True):
        for split in range(splits):
            counts = results[Run(case, design, n_partitions, split).key][costs]
            row[: len(counts)] += np.array(counts) / (TEST_ROWS * splits)
    return Envelope(shares.max(axis=0), np.array(tried)[shares.argmax(axis=0)])


def gain(results: Results, case: Case, design: Design, costs: str) -> NDArray[np.float64]:
    """How much more a design certifies than disjoint blocks do on the same rows.

    Those may take all their choices, unless the design itself has only some. Not a number where they certify next to
    nothing.
    """
    tried = choices(case, design if design.only else DISJOINT)
    theirs = envelope(results, case, DISJOINT, costs, tried=tried, splits=design.splits).shares
    theirs[theirs < MATTERS] = np.nan
    return np.asarray(envelope(results, case, design, costs).shares - theirs)


def counted(results: Results, case: Case, costs: str = "costs") -> NDArray[np.bool_]:
    """Radii at which disjoint blocks are not at their best with more partitions than the others were tried with."""
    disjoint = envelope(results, case, DISJOINT, costs)
    return (disjoint.best <= case.partitions[-1]) & (disjoint.shares >= MATTERS) & (np.array(RADII) > 0)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text."""
    lines = [head, ["---", *(["---:"] * (len(head) - 1))], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "" if np.isnan(value) else f"{100 * value:+.1f}".replace("-", "−")


def summary(results: Results) -> str:
    """For each case and design, what overlap gains over all radii that are counted."""
    head = [
        "",
        "radii",
        "+3 points or more",
        "mean gain",
        "of the larger half",
        "least",
        "most",
        "mean gain at unit cost",
    ]
    rows = []
    for case in CASES:
        for design in DESIGNS[1:]:
            some = gain(results, case, design, "costs")[counted(results, case)]
            unit = gain(results, case, design, "unit")[counted(results, case, "unit")]
            some, unit = some[np.isfinite(some)], unit[np.isfinite(unit)]
            larger = some[len(some) // 2 :]
            worthwhile = int((some >= WORTHWHILE - 1e-9).sum())
            figures = map(points, (some.mean(), larger.mean(), some.min(), some.max(), unit.mean()))
            rows.append([f"{case.title}: {design.title}", str(len(some)), str(worthwhile), *figures])
    return markdown(head, rows)


def by_radius(results: Results, case: Case) -> str:
    """What each design certifies at some radii, with the number of partitions that does it."""
    designs = [design for design in DESIGNS if not design.only]
    found = [envelope(results, case, design, "costs") for design in designs]
    found.insert(0, envelope(results, case, DISJOINT, "unit"))
    at = counted(results, case)
    rows = []
    for radius in SHOWN:
        place = RADII.index(radius)
        if at[place]:
            cells = [f"{100 * one.shares[place]:.1f} ({one.best[place]:,})" for one in found]
            rows.append([f"{radius:,}", *cells, points(gain(results, case, DESIGNS[-1], "costs")[place])])
    head = ["radius", "disjoint, unit cost", *(design.title for design in designs), "random − disjoint"]
    return markdown(head, rows)


def training_cost(results: Results) -> str:
    """What each design trains, and its times as multiples of those of disjoint blocks."""
    head = ["", "submodels fitted", "rows seen", "time to fit", "time to certify"]
    rows = []
    for design in DESIGNS:
        mine = [run for run in runs() if run.design is design]
        found = [(results[run.key], results[run._replace(design=DISJOINT).key], run.n_partitions) for run in mine]
        ratios = [
            median(one["fits"] / q for one, _, q in found),
            median(one["rows_seen"] / one["rows"] for one, _, _ in found),
            median(one["fit_s"] / max(other["fit_s"], 0.01) for one, other, _ in found),
            median(one["certify_s"] / max(other["certify_s"], 0.01) for one, other, _ in found),
        ]
        units = ("q", "n", "×", "×")
        name = design.title if design is DISJOINT else f"{design.title}, spread {design.spread}"
        rows.append([name, *(f"{ratio:.1f} {unit}" for ratio, unit in zip(ratios, units, strict=True))])
    return markdown(head, rows)


def in_seconds(results: Results) -> str:
    """What the designs take with one number of partitions, in figures."""
    rows = []
    for case in CASES:
        for design in DESIGNS:
            one = results[Run(case, design, COMMON, 0).key]
            figures = [f"{one['fits']:,}", f"{one['rows_seen']:,}", f"{one['fit_s']:.1f}", f"{one['certify_s']:.1f}"]
            rows.append([f"{case.title}: {design.title}", *figures])
    return markdown(["", "submodels fitted", "rows seen", "CPU s to fit", f"CPU s to certify {TEST_ROWS} rows"], rows)


def render() -> None:
    """Put the tables into the page and draw the picture."""
    results = stored()
    absent = sum(run.key not in results for run in runs())
    if absent:
        raise SystemExit(f"{absent} of {len(list(runs()))} results are not in {RESULTS.name} yet; measure first")
    parts = ["### Over all radii", summary(results), "### What it costs", training_cost(results)]
    parts += [f"With `n_partitions={COMMON}`:", in_seconds(results)]
    for case in CASES:
        parts += [f"### {case.title.capitalize()}", by_radius(results, case)]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    text = f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{rest.split(END)[1]}"
    PAGE.write_text(text, encoding="utf-8")
    draw(results)


def draw(results: Results) -> None:
    """Certified accuracy of the envelopes above, and what overlap gains below."""
    import matplotlib as mpl  # noqa: PLC0415  only where it is drawn

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    colours = dict(zip(DESIGNS, ("black", "tab:blue", "tab:orange", "tab:gray"), strict=True))
    figure, axes = plt.subplots(2, len(CASES), figsize=(13, 5.6), sharex="col", sharey="row", height_ratios=(3, 2))
    for case, (top, bottom) in zip(CASES, axes.T, strict=True):
        at = counted(results, case)
        shown = np.array(RADII)[at]
        for design in DESIGNS:
            style = {"color": colours[design], "lw": 1.4, "ls": ":" if design.layout == "random" else "-"}
            label = design.title if not design.only else f"{design.title}, fewer choices"
            top.plot(shown, 100 * envelope(results, case, design, "costs").shares[at], label=label, **style)
            if design is not DISJOINT:
                bottom.plot(shown, 100 * gain(results, case, design, "costs")[at], **style)
        bottom.axhline(0, color="black", lw=0.8)
        bottom.axhline(100 * WORTHWHILE, color="black", lw=0.5, ls="--")
        top.set(title=case.title, xscale="log", ylim=(0, 100))
        bottom.set(xlabel="certified radius (deleted rows)")
    axes[0, 0].set_ylabel("certified accuracy, %")
    axes[1, 0].set_ylabel("points over disjoint")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    for part in sys.argv[1:] or ("measure", "render"):
        {"measure": measure, "render": render}[part]()
