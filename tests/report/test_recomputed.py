"""Every number of the results JSON's comparison, computed again from raw samples by textbook means.

Numpy's least squares with dummy columns, and scipy's distributions: nothing of vnuma's analysis. A new
figure belongs in `recomputed`, or with its reason in `ELSEWHERE`.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from tests.report.build import Story, build, noisy, study_text
from vnuma.report.export.results import as_json
from vnuma.report.model.model import load_run
from vnuma.store.open import Store
from vnuma.store.samples import StoredSample, iter_samples

Floats = NDArray[np.float64]
SIZES = (500, 1000)
REFERENCE = ("1x16", "1x16 (A/A)")
ARMS = ("2x8", "4x4", "8x2", "16x1")
COLUMNS = (*REFERENCE, *ARMS)
BLOCKS = 8

ELSEWHERE = {
    "arms[].noticeable_shift": "a limit: tests/unit/analysis/test_verdict.py",
    "arms[].unseen_share": "Clopper-Pearson: tests/unit/analysis/test_verdict.py",
    "arms[].blocks_needed": "a plan: tests/unit/analysis/test_detectable.py",
    "detectable_effect.value": "a plan: tests/unit/analysis/test_detectable.py",
    "two_groups.critical": "simulated: tests/unit/analysis/test_golden.py",
    "blocks": "a count of the story",
    "complete_blocks": "a count of the story",
    "blocks_not_begun": "a count of the story",
    "arms[].level": "declared",
    "sizes[].size": "declared",
    "sizes[].arms[].level": "declared",
}
"""Numbers that are not figures of the samples, or that another independent test has."""


class Cells:
    """Medians by size, block and column, and the iterations behind them."""

    def __init__(self, stored: Iterable[StoredSample]) -> None:
        found: dict[tuple[int, int, str], list[float]] = defaultdict(list)
        for one in stored:
            if not one.sample.warmup:
                found[one.sample.size, one.block, one.label].append(one.sample.elapsed_ms or 0.0)
        self.iterations = found
        self.medians = np.array(
            [
                [[statistics.median(found[size, block, label]) for label in COLUMNS] for size in SIZES]
                for block in range(1, BLOCKS + 1)
            ]
        )

    @property
    def y(self) -> Floats:
        """Y[block, column]: mean over sizes of ln(median)."""
        return np.asarray(np.log(self.medians).mean(axis=1))


def least_squares(y: Floats, columns: Sequence[int]) -> tuple[float, int, Floats]:
    """RSS, df and residuals of column + block, by dummy variables."""
    rows = [(b, c) for b in range(len(y)) for c in columns]
    x = np.zeros((len(rows), len(y) + len(columns)))
    for number, (b, c) in enumerate(rows):
        x[number, b] = x[number, len(y) + list(columns).index(c)] = 1
    values = np.array([y[b, c] for b, c in rows])
    rest = values - x @ np.linalg.lstsq(x, values, rcond=None)[0]
    return float(rest @ rest), len(rows) - np.linalg.matrix_rank(x), rest.reshape(len(y), len(columns))


def gates(y: Floats) -> list[tuple[float, float, float]]:
    """F of each column, and its 90% and 99% points."""
    whole, df, _ = least_squares(y, range(len(COLUMNS)))
    found = []
    for column in range(len(COLUMNS)):
        rss, rest, _ = least_squares(y, [c for c in range(len(COLUMNS)) if c != column])
        f = (whole - rss) / (df - rest) / (rss / rest)
        near, far = (float(stats.f.ppf(level, df - rest, rest)) for level in (0.90, 0.99))
        found.append((f, near, far))
    return found


def contrast(y: Floats, column: int, alpha: float) -> dict[str, Any]:
    """One arm's paired t with Bonferroni, or the pooled error with Dunnett's distribution."""
    d = y[:, column] - y[:, :2].mean(axis=1)
    tests = gates(y)
    rss, df, _ = least_squares(y, range(len(COLUMNS)))
    apart = any(f > far for f, _, far in tests) or any(tests[c][0] > tests[c][1] for c in (0, 1, column))
    if apart:
        se, df = float(d.std(ddof=1)) / math.sqrt(BLOCKS), BLOCKS - 1
        constants = [float(stats.t.ppf(1 - level / (2 * len(ARMS)), df)) for level in (alpha, 2 * alpha)]
        p = min(1.0, len(ARMS) * 2 * float(stats.t.sf(abs(d.mean() / se), df)))
    else:
        se = math.sqrt(rss / df * 1.5 / BLOCKS)
        constants = [dunnett(level, df) for level in (alpha, 2 * alpha)]
        p = 1 - inside(abs(d.mean() / se), df)
    mean, half = float(d.mean()), constants[0] * se
    limits = [(math.exp(mean - c * se), math.exp(mean + c * se)) for c in constants]
    return {"d": d, "ratio": math.exp(mean), "df": df, "p": p, "limits": limits, "mean": mean, "half": half}


@cache
def inside(t: float, df: int) -> float:
    """P(all |T| <= t) for arms that share the mean of two reference columns (correlation 1/3), on a grid."""
    z = np.linspace(-7, 7, 281)
    weights = stats.norm.pdf(z) * (z[1] - z[0])
    u = (np.arange(4000) + 0.5) / 4000
    s = np.sqrt(stats.chi2.ppf(u, df) / df)[:, None]
    near, far = math.sqrt(1 / 3), math.sqrt(2 / 3)
    each = stats.norm.cdf((t * s + near * z) / far) - stats.norm.cdf((-t * s + near * z) / far)
    return float((each ** len(ARMS) @ weights).mean())


@cache
def dunnett(alpha: float, df: int) -> float:
    """The two-sided constant."""
    return float(brentq(lambda t: inside(t, df) - (1 - alpha), 1.0, 6.0, xtol=1e-7))


def secondary(d: Floats) -> dict[str, Any]:
    """Hodges-Lehmann with its exact interval, leave-one-out, and the sign-flip test by all patterns."""
    walsh = sorted((d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i, len(d)))
    cut = next(c for c in range(len(walsh)) if 2 * signed_rank_tail(c + 1) > 0.05)
    alone = [math.exp(np.delete(d, i).mean()) for i in range(len(d))]
    signs = itertools.product((1, -1), repeat=len(d))
    flips = [abs(np.dot(sign, d)) >= abs(d.sum()) - 1e-12 for sign in signs]
    return {
        "rank_ratio": math.exp(statistics.median(walsh)),
        "rank_interval[]": [math.exp(walsh[cut]), math.exp(walsh[-1 - cut])],
        "leave_one_out[]": [min(alone), max(alone)],
        "sign_flip_p": statistics.fmean(flips),
    }


def signed_rank_tail(at: int) -> float:
    """P(W <= at) of the signed-rank statistic of BLOCKS pairs, counted."""
    sums = [
        sum(r for r, take in zip(range(1, BLOCKS + 1), picked, strict=True) if take)
        for picked in itertools.product((0, 1), repeat=BLOCKS)
    ]
    return sum(total <= at for total in sums) / len(sums)


def recomputed(cells: Cells, positions: Mapping[tuple[int, str], int]) -> dict[str, list[float]]:
    """Path below an analysis -> its numbers, in the order of the document."""
    y = cells.y
    rss, df, rest = least_squares(y, range(len(COLUMNS)))
    found: dict[str, list[float]] = {"residual_sd": [math.sqrt(rss / df)], "df": [df]}
    arms = [contrast(y, COLUMNS.index(arm), 0.05) for arm in ARMS]
    found["arms[].boots"] = [BLOCKS] * len(ARMS)
    found["arms[].ratio"] = [arm["ratio"] for arm in arms]
    found["arms[].df"] = [arm["df"] for arm in arms]
    found["arms[].adjusted_p"] = [arm["p"] for arm in arms]
    found["arms[].interval_95[]"] = [x for arm in arms for x in arm["limits"][0]]
    found["arms[].interval_90[]"] = [x for arm in arms for x in arm["limits"][1]]
    for arm in arms:
        for name, value in secondary(arm["d"]).items():
            found.setdefault(f"arms[].{name}", []).extend(value if isinstance(value, list) else [value])
    found["gate[].f"] = [f for f, _, _ in gates(y)]
    found["gate[].critical"] = [critical for _, critical, _ in gates(y)]
    for more in (spread(cells, rss / df), a_a(y, rss / df, df), drift(y, rest, positions, df)):
        found |= more
    found |= growth(cells) | sizes(cells)
    ordered = np.sort(rest.ravel())
    splits = ((ordered[:i], ordered[i:]) for i in range(1, len(ordered)))
    between = max(len(a) * a.mean() ** 2 + len(b) * b.mean() ** 2 for a, b in splits)
    found["two_groups.share"] = [float(between / (ordered @ ordered))]
    return found


def spread(cells: Cells, ms: float) -> dict[str, list[float]]:
    """ANOVA estimator of the SD between boots; a median of three has 0.448671 of the variance within."""
    within = statistics.fmean(np.var(np.log(values), ddof=1) for values in cells.iterations.values())
    boot = ms - 0.448671 * within / len(SIZES)
    return {"boot_sd": [math.sqrt(boot)], "within_sd": [math.sqrt(within)], "boot_share": [boot / ms]}


def a_a(y: Floats, ms: float, df: int) -> dict[str, list[float]]:
    """The reference against itself, by its own pairs where a column stands apart."""
    d, tests = y[:, 1] - y[:, 0], gates(y)
    own = any(f > far for f, _, far in tests) or any(tests[c][0] > tests[c][1] for c in (0, 1))
    if own:
        ms, df = float(d.var(ddof=1)) / 2, BLOCKS - 1
    se = math.sqrt(2 * ms / BLOCKS)
    half = float(stats.t.ppf(0.975, df)) * se
    return {
        "a_a.ratio": [math.exp(d.mean())],
        "a_a.interval_95[]": [math.exp(d.mean() - half), math.exp(d.mean() + half)],
        "a_a.p": [2 * float(stats.t.sf(abs(d.mean()) / se, df))],
        "a_a.noise_floor": [math.expm1(half)],
    }


def drift(
    y: Floats, rest: Floats, positions: Mapping[tuple[int, str], int], df: int
) -> dict[str, list[float]]:
    """A line through block means, and the place in the block added to the fit."""
    line = stats.linregress(np.arange(1, BLOCKS + 1), y.mean(axis=1))
    place = np.array(
        [[positions[b + 1, label] for label in COLUMNS] for b in range(BLOCKS)], dtype=np.float64
    )
    x = place - place.mean(axis=1, keepdims=True)
    x -= x.mean(axis=0, keepdims=True)
    slope = float((x * rest).sum() / (x * x).sum())
    left = rest - slope * x
    se = math.sqrt(float((left**2).sum()) / (df - 1) / float((x * x).sum()))
    return {
        "drift.between_blocks.slope": [float(line.slope)],
        "drift.between_blocks.p": [float(line.pvalue)],
        "drift.within_blocks.slope": [slope],
        "drift.within_blocks.p": [2 * float(stats.t.sf(abs(slope) / se, df - 1))],
    }


def growth(cells: Cells) -> dict[str, list[float]]:
    """The gap's slope on ln(rows joined), in percentage points per doubling of rows."""
    work = 2 * np.log(np.array(SIZES, dtype=np.float64))
    x = work - work.mean()
    y = np.tensordot(np.log(cells.medians), x, axes=(1, 0)) / float(x @ x)
    arms = [contrast(y, COLUMNS.index(arm), 0.05) for arm in ARMS]
    scale = 100 * math.log(2)
    return {
        "growth[].points": [scale * arm["mean"] for arm in arms],
        "growth[].interval_95[]": [scale * (arm["mean"] + s * arm["half"]) for arm in arms for s in (-1, 1)],
        "growth[].adjusted_p": [arm["p"] for arm in arms],
    }


def sizes(cells: Cells) -> dict[str, list[float]]:
    """Table 1 at each size, with intervals at 1 - 0.05/2."""
    found: dict[str, list[float]] = defaultdict(list)
    for index in range(len(SIZES)):
        medians = cells.medians[:, index, :]
        base = float(np.median(medians[:, :2]))
        y = np.log(medians)
        for unit in ("", "_ms"):
            found[f"sizes[].reference_median{unit}"].append(base)
        for arm, mine in (("1x16", medians[:, :2]), *((a, medians[:, [COLUMNS.index(a)]]) for a in ARMS)):
            found["sizes[].arms[].boots"].append(mine.size)
            found["sizes[].arms[].range_coverage"].append(1 - 2.0 ** (1 - mine.size))
            for unit in ("", "_ms"):
                found[f"sizes[].arms[].median{unit}"].append(float(np.median(mine)))
                found[f"sizes[].arms[].min{unit}"].append(float(mine.min()))
                found[f"sizes[].arms[].max{unit}"].append(float(mine.max()))
            if arm == "1x16":
                continue
            one = contrast(y, COLUMNS.index(arm), 0.05 / len(SIZES))
            found["sizes[].arms[].ratio"].append(one["ratio"])
            for unit in ("", "_ms"):
                found[f"sizes[].arms[].difference{unit}"].append((one["ratio"] - 1) * base)
            found["sizes[].arms[].interval[]"] += one["limits"][0]
            found["sizes[].arms[].equivalence_interval[]"] += one["limits"][1]
    return dict(found)


def numbers(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number below, with its path."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from numbers(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item, f"{path}[]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


@pytest.mark.parametrize("seedling", ["even", "apart"])
def test_every_number_of_the_comparison_is_that_of_a_second_computation(store: Store, seedling: str) -> None:
    """To a relative 1e-6; Dunnett's distribution to 2e-5, since the grid is coarse."""
    sd = 0.004 if seedling == "apart" else 0.0037
    run = build(store, Story(text=study_text(blocks=BLOCKS, sizes="500, 1000", forms="server"), ms=noisy(sd)))
    loaded = load_run(store, run.name)
    document = json.loads(as_json(loaded))
    primary = next(item for item in document["analyses"] if item["primary"])
    with store.read() as connection:
        cells = Cells(iter_samples(connection, run.id))
    positions = {(cell.block, cell.label): cell.position for cell in loaded.cells}

    stored: dict[str, list[float]] = defaultdict(list)
    for path, number in numbers(primary):
        stored[path].append(number)
    expected = recomputed(cells, positions)

    assert set(stored) - set(expected) - set(ELSEWHERE) == set()
    wrong = {
        path: (stored[path], values)
        for path, values in expected.items()
        if stored[path] != pytest.approx(values, rel=1e-6, abs=2e-5)
    }
    assert wrong == {}
