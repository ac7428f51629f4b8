"""Fill a template: style and script stand in the page, each permitted by its hash alone."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vnuma.assets import asset


def filled(template: str, style: str, script: str, **values: object) -> str:
    """A page of templates/, with a style sheet and a script of the same folder in it."""
    css, code = text_of(style), text_of(script)
    return (
        environment()
        .get_template(template)
        .render(
            **values, style=Markup(css), script=Markup(code), style_hash=_hash(css), script_hash=_hash(code)
        )
    )


@cache
def environment() -> Environment:
    """The templates: whatever is filled in is escaped, and a name that is not given is an error."""
    return Environment(
        loader=FileSystemLoader(asset("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy of such a page, for a server that sends it."""
    return (
        f"default-src 'none'; style-src '{_hash(text_of(style))}'; script-src '{_hash(text_of(script))}'; "
        "base-uri 'none'; form-action 'none'"
    )


def text_of(name: str) -> str:
    """A style sheet or script of templates/."""
    return (asset("templates") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a Content-Security-Policy names a permitted inline text by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
