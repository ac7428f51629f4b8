"""Dunnett's probability against adaptive quadrature, the multivariate t, and its limits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from vnuma.analysis import distributions

# The first example fills the caches of quadrature nodes: no deadline for a single one.
PATIENT = settings(deadline=None, max_examples=30)


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _adaptive(c: float, p: int, df: int, rho: float) -> float:
    """The same double integral by nested adaptive quadrature, written with the standard library."""
    root, turn = math.sqrt(1 - rho), math.sqrt(rho)
    log_norm = math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2)

    def given_scale(s: float) -> float:
        def inner(z: float) -> float:
            inside = _phi((c * s + turn * z) / root) - _phi((turn * z - c * s) / root)
            return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * inside**p

        return float(integrate.quad(inner, -8.5, 8.5, epsabs=1e-11, epsrel=1e-11, limit=200)[0])

    def outer(s: float) -> float:
        return math.exp(log_norm + (df - 1) * math.log(s) - df * s * s / 2) * given_scale(s)

    high = float(stats.chi.isf(1e-14, df)) / math.sqrt(df)
    return float(integrate.quad(outer, 1e-12, high, epsabs=1e-10, epsrel=1e-10, limit=200)[0])


@pytest.mark.parametrize(
    ("c", "p", "df", "rho"), [(2.6, 4, 25, 1 / 3), (2.1, 2, 6, 1 / 2), (4.5, 7, 11, 1 / 3)]
)
def test_probability_equals_adaptive_quadrature(c: float, p: int, df: int, rho: float) -> None:
    """G(c) agrees with adaptive quadrature to 1e-9."""
    assert distributions.probability(c, p, df, rho) == pytest.approx(_adaptive(c, p, df, rho), abs=1e-9)


@PATIENT
@given(
    st.integers(2, 15),
    st.integers(1, 300),
    st.sampled_from([1 / 2, 1 / 3]),
    st.sampled_from([0.0025, 0.0125, 0.05, 0.1]),
)
def test_constant_lies_between_t_and_bonferroni_and_inverts(
    p: int, df: int, rho: float, alpha: float
) -> None:
    """The constant lies between one t and Bonferroni, and its adjusted p is alpha."""
    c = distributions.dunnett_constant(alpha, p, df, rho)
    assert stats.t.ppf(1 - alpha / 2, df) <= c <= stats.t.ppf(1 - alpha / (2 * p), df)
    assert distributions.dunnett_p(c, p, df, rho) == pytest.approx(alpha, abs=1e-10)
    assert distributions.dunnett_p(-c, p, df, rho) == pytest.approx(alpha, abs=1e-10)


@pytest.mark.parametrize(("t", "expected"), [(0.0, 1.0), (math.inf, 0.0), (-math.inf, 0.0)])
def test_adjusted_p_at_its_ends(t: float, expected: float) -> None:
    """No difference gives p = 1, a difference without error p = 0."""
    assert distributions.dunnett_p(t, 4, 20, 1 / 3) == expected
