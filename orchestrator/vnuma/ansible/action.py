"""The one base class of the action plugins: options in, JSON out, errors as failures of the task.

A plugin says what to do in `act`. Its options are those that its documentation stub in
`plugins/modules/` describes, so they are written down once. Heavy imports stand at the top of each
plugin file: the play's parent process imports them once and every worker inherits them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from ansible.plugins.action import ActionBase
from ansible.plugins.loader import fragment_loader
from ansible.utils.plugin_docs import get_docstring
from pydantic import ValidationError

from vnuma.engine.target import Target
from vnuma.errors import AttemptFailed, InputError, VnumaError

Options = dict[str, Any]


class VnumaAction(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """An action plugin of this collection. Works in check mode; never runs on the target."""

    stub: ClassVar[str]
    """Path of the plugin file; the documentation stub has the same name in `../modules/`."""

    _requires_connection = False
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Validate the options, act, and turn a VnumaError into a failed task with its exit code."""
        self._supports_check_mode = True
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, options = self.validate_argument_spec(argument_spec=argument_spec(self.stub))
        try:
            result.update(plain(self.act(options, check=bool(self._task.check_mode))))
        except VnumaError as error:
            result.update(failed=True, msg=str(error), exit_code=error.exit_code, error=type(error).__name__)
            if isinstance(error, AttemptFailed):
                result["reason"] = error.reason
        return result

    def act(self, options: Options, *, check: bool) -> Options:
        """Do the plugin's work; `check` must predict without changing anything."""
        raise NotImplementedError


def target_of(options: Options) -> Target:
    """The task's VM. Raises InputError naming what is wrong with the inventory's variables."""
    try:
        return Target.model_validate(options["target"])
    except ValidationError as error:
        what = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise InputError(
            f"the task's target is wrong: {what}.", fix="inventories/example shows every variable."
        ) from None


def argument_spec(plugin_file: str) -> dict[str, dict[str, Any]]:
    """The options of a plugin as its documentation stub describes them, fragments included."""
    stub = Path(plugin_file).resolve().parent.parent / "modules" / Path(plugin_file).name
    document = get_docstring(str(stub), fragment_loader, collection_name="vnuma.vnuma", plugin_type="module")[
        0
    ]
    return _spec(document["options"])


def _spec(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    kept = ("type", "required", "default", "choices", "elements")
    spec = {}
    for name, option in options.items():
        spec[name] = {key: option[key] for key in kept if key in option}
        if "suboptions" in option:
            spec[name]["options"] = _spec(option["suboptions"])
    return spec


def plain(value: Any) -> Any:
    """A result as JSON types only: workers hand it to their parent."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value
