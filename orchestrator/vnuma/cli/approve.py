"""`vnuma approve`: let a run start that another person has created."""

from __future__ import annotations

from vnuma.cli.options import PermitOptions, RunArgument, StoreOption, TicketOption
from vnuma.cli.screen import say


def approve(run: RunArgument, ticket: TicketOption = None, store: StoreOption = None) -> None:
    """Approve a run that another person has created; then it can be started.

    If the inventory says vnuma_approval: required, vnuma run STUDY stores the run, which then waits for this.
    The approval covers the run as it was created; a changed study is a new run.

    Examples: vnuma approve quick.4; vnuma approve quick.4 --ticket CHG0031234
    """
    from vnuma.engine.run.approval import approve as give

    valid = PermitOptions(ticket=ticket).permit()  # a wrong ticket is a mistake on the command line
    say(give(run, ticket=valid.ticket, url=store))
