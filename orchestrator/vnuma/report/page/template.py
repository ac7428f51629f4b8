"""Fill a template: style and script stand in the page, each permitted by its hash alone."""

from __future__ import annotations

import base64
import hashlib

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vnuma.assets import asset


def filled(template: str, style: str, script: str, **values: object) -> str:
    """A page of templates/, with a style sheet and a script of the same folder in it."""
    folder = asset("templates")
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    css, code = ((folder / name).read_text(encoding="utf-8") for name in (style, script))
    return environment.get_template(template).render(
        **values, style=Markup(css), script=Markup(code), style_hash=_hash(css), script_hash=_hash(code)
    )


def _hash(text: str) -> str:
    """What a Content-Security-Policy names a permitted inline text by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
