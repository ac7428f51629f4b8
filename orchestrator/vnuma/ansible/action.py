"""The action plugins: options in, JSON out, errors as failures of the task.

A plugin is a function. Its options are those of its documentation stub in `plugins/modules/`, so they are
defined once. Heavy imports are at the top of each plugin file: the play's parent process imports them once
and every worker inherits them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import fragment_loader
from ansible.utils.display import Display
from ansible.utils.plugin_docs import get_docstring
from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from vnuma.engine.access.guest_shell import LONGEST_S, Output, Shell, command, output_of, refused
from vnuma.errors import AttemptFailed, DriverMissing, InputError, VnumaError, from_os_error
from vnuma.words.validation import messages

try:
    from vnuma.engine.access.connections import share_in_play
    from vnuma.engine.access.host_variables import native, with_secrets
    from vnuma.engine.access.locking import this_host
    from vnuma.engine.access.secrets import conceal, is_password, masked
    from vnuma.engine.access.target import Target
    from vnuma.engine.actions.steps import Step, take_step
except DriverMissing as error:
    # Ansible reports any other exception during a plugin's import as its own bug, with a traceback.
    raise AnsibleError(str(error)) from None

Options = dict[str, Any]
ArgumentSpec = dict[str, dict[str, Any]]
ByHand = Callable[[Target, Options], Options]

# The play's parent imports this file before it forks the first worker.
share_in_play()
this_host()  # a play is the same supervisor in every worker, also once its machine got another name


class VnumaAction(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """An action plugin of this collection. Works in check mode; reaches the target only through a `Shell`."""

    spec: ClassVar[ArgumentSpec]
    """The plugin's options, read on import, once for all workers."""
    act: ClassVar[Act]
    """Does the plugin's work. In check mode it must predict without changing anything."""

    _requires_connection = False
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Validate the options, act, and turn an expected error into a failed task with its exit code."""
        self._supports_check_mode = True
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._conceal_passwords(task_vars or {})
        _, options = self.validate_argument_spec(argument_spec=self.spec)
        check = bool(self._task.check_mode)
        try:
            result.update(plain(type(self).act(self, options, check)))
        except VnumaError as error:
            result.update(_failure(error))
        except OSError as error:
            result.update(_failure(from_os_error(error)))
        return result

    def _conceal_passwords(self, variables: Mapping[str, object]) -> None:
        """Those of this host's connection, also where a prompt asked for them."""
        asked = self._play_context.password, self._play_context.become_pass
        conceal(dict(zip(("ansible_password", "ansible_become_pass"), asked, strict=True)))
        for name in filter(is_password, variables):
            with suppress(AnsibleError):  # what has no value is not printed
                conceal({name: self._templar.template(variables[name])})

    def shell_of(self, target: Target) -> Shell:
        """The shell of the task's host, as root if the task has `become`."""
        return partial(self._run_script, target.name)

    def _run_script(self, name: str, script: str, within_s: float = LONGEST_S) -> Output:
        try:
            with _masked_display():
                return output_of(self._low_level_execute_command(command(script, within_s)))
        except AnsibleError as error:  # a failed connection, or a missing SSH client
            with suppress(AnsibleError):
                self._connection.reset()  # a shared one does not survive a boot of the guest
            raise refused(name, error.message) from error


@contextmanager
def _masked_display() -> Iterator[None]:
    """Ansible shows at -vvv what a program prints: without secrets."""
    display = Display()  # the only one
    shown = display.verbose
    display.verbose = lambda msg, **where: shown(masked(msg), **where)
    try:
        yield
    finally:
        display.verbose = shown


Act = Callable[[VnumaAction, Options, bool], Options]
"""A task with its options, and whether it is in check mode, to its result."""


def plugin(file: str, act: Act) -> type[VnumaAction]:
    """The plugin of that file. Ansible finds it by the name ActionModule."""
    return type("ActionModule", (VnumaAction,), {"spec": argument_spec(file), "act": act})


def step_plugin(
    file: str, *, take: tuple[Step, ByHand], plan: tuple[Callable[[str, Options, Target], Options], ByHand]
) -> type[VnumaAction]:
    """The plugin of a step of a run's attempt at a VM, or without `attempt` of the same by hand.

    `take` does it, `plan` tells in check mode what it would change: each in a run, and by hand.
    """

    def act(task: VnumaAction, options: Options, check: bool) -> Options:
        target = target_of(options)
        if not options["attempt"]:
            return (plan if check else take)[1](target, options)
        if check:
            return plan[0](options["run"], options["attempt"], target)
        return take_step(take[0], options["run"], options["attempt"], target, task.shell_of(target))

    return plugin(file, act)


def target_of(options: Options) -> Target:
    """The task's target. Raises InputError with what is wrong with the inventory's variables."""
    document = {name: _field(options["target"], name) for name in options["target"]}
    try:
        return Target.model_validate(document)
    except ValidationError as error:
        what = f"the task's target is wrong: {messages(error)}."
        raise InputError(what, fix="inventories/example shows every variable.") from None


def _field(target: Mapping[str, Any], name: str) -> Any:
    """One field of the task's target, without Ansible's tags; a lookup's result is a secret."""
    if name in ("vcenter", "sql") and isinstance(target[name], Mapping):
        return with_secrets(target[name], str(target.get("name")), f"vnuma_{name}")
    return native(target[name])


def argument_spec(plugin_file: str) -> ArgumentSpec:
    """The options of a plugin from its documentation stub, fragments included.

    Ansible does not check the content of dict options: `Target` and the study's models do.
    """
    stub = Path(plugin_file).resolve().parent.parent / "modules" / Path(plugin_file).name
    document, *_ = get_docstring(
        str(stub), fragment_loader, collection_name="vnuma.vnuma", plugin_type="module"
    )
    kept = ("type", "required", "default", "choices", "elements")
    return {
        name: {key: option[key] for key in kept if key in option}
        for name, option in document["options"].items()
    }


def _failure(error: VnumaError) -> Options:
    """A task's result for an expected failure: the message, and stable identifiers for playbooks."""
    failure = {"failed": True, "msg": str(error), "exit_code": error.exit_code, "error": type(error).__name__}
    return failure | ({"reason": error.reason} if isinstance(error, AttemptFailed) else {})


plain = to_jsonable_python
"""A result as JSON types only, since workers pass it to their parent."""
