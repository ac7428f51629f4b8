"""vl-convert in a process of its own, since it aborts the process for some charts."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import vl_convert

from vnuma.isolation import IsolatedModule

_DRAWER = IsolatedModule(__name__, seconds=60)


def chart_as_svg(specification: Any, version: str) -> str:
    """A Vega-Lite chart as an SVG document. Raises IsolationError, as all functions here."""
    return str(_DRAWER.call("_chart_as_svg", specification, version))


def svg_as_png(svg: str) -> bytes:
    """PNG at twice its size in pixels."""
    return b64decode(_DRAWER.call("_svg_as_png", svg))


def svg_as_pdf(svg: str) -> bytes:
    """PDF with vector graphics."""
    return b64decode(_DRAWER.call("_svg_as_pdf", svg))


def _chart_as_svg(specification: Any, version: str) -> str:
    return vl_convert.vegalite_to_svg(specification, vl_version=version)


def _svg_as_png(svg: str) -> str:
    return b64encode(vl_convert.svg_to_png(svg, scale=2.0)).decode()


def _svg_as_pdf(svg: str) -> str:
    return b64encode(vl_convert.svg_to_pdf(svg)).decode()
