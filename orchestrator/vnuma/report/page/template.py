"""Fill a template with inline style and script, each permitted only by its hash."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vnuma.assets import asset
from vnuma.errors import writing


def filled(template: str, style: str, script: str, **values: object) -> str:
    """A page from templates/, with a style sheet and a script from the same folder."""
    css, code = text_of(style), text_of(script)
    return (
        environment()
        .get_template(template)
        .render(
            **values,
            style=Markup(css),
            script=Markup(code),
            style_hash=hash_of(css),
            script_hash=hash_of(code),
        )
    )


def write_file(path: Path, content: str | bytes, what: str, fix: str = "Name another file: -o FILE") -> None:
    """Write a page or picture, called `what` in messages, and make its folders. Raises InputError."""
    with writing(path, what, fix=fix):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@cache
def environment() -> Environment:
    """The templates, with autoescaping; undefined names raise."""
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
        f"default-src 'none'; style-src '{hash_of(text_of(style))}'; "
        f"script-src '{hash_of(text_of(script))}'; base-uri 'none'; form-action 'none'"
    )


def text_of(name: str) -> str:
    """A style sheet or script of templates/."""
    return (asset("templates") / name).read_text(encoding="utf-8")


def hash_of(text: str) -> str:
    """The hash by which a Content-Security-Policy permits an inline text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
