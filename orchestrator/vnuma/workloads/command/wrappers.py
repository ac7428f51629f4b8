"""Programs that start another one, as numactl does: which programs a list of arguments names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from getopt import GetoptError, getopt

_WRAPPERS = {
    "env": ("u:v", "unset= debug", 0),
    "nice": ("n:", "adjustment=", 0),
    "nohup": ("", "", 0),
    "numactl": (
        "abli:p:P:m:N:C:w:",
        "all balancing localalloc interleave= preferred= preferred-many= membind= cpunodebind= physcpubind= "
        "weighted-interleave=",
        0,
    ),
    "runuser": ("u:g:G:", "user= group= supp-group=", 0),
    "setsid": ("cfw", "ctty fork wait", 0),
    "sudo": ("nEHu:g:", "non-interactive preserve-env set-home user= group=", 0),
    "taskset": ("ac", "all-tasks cpu-list", 1),
    "timeout": ("k:s:fv", "kill-after= signal= foreground preserve-status verbose", 1),
}
"""Short options, long ones, and how many operands stand before the program, each as its manual page has them.

Left out are those that change the folder or where programs are looked for (`env -i`, `sudo -i`): nothing is
said of what they start.
"""


def programs_of(words: Sequence[str]) -> Iterator[str]:
    """The program of a list of arguments and, as far as that is certain, those that it starts."""
    yield words[0]
    name = words[0].rpartition("/")[2]
    if name not in _WRAPPERS:
        return
    short, long, operands = _WRAPPERS[name]
    try:
        given, rest = getopt([*words[1:]], short, long.split())
    except GetoptError:
        return
    if name == "runuser" and not {"-u", "--user"} & {option for option, _ in given}:
        return  # it starts a shell
    if operands and len(rest) > 2 and rest[0].startswith("{"):
        return  # a variable: perhaps another option
    rest = rest[operands:]
    while name in ("env", "sudo") and rest and "=" in rest[0]:
        if rest.pop(0).startswith("PATH="):
            return
    if rest and rest[0] and not rest[0].startswith("-"):
        yield from programs_of(rest)
