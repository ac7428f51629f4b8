"""An event of a run (`vnuma/event/1`) as text, and in the formats of mail and chats. No I/O.

Names come from inventories and vCenters of others: none may become a header, a link or a mention.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.header import Header
from email.mime.text import MIMEText
from email.utils import formatdate, make_msgid
from typing import Any

from vnuma.domain.vm.plain_text import escaped
from vnuma.engine.notify.channels import Mail

Event = Mapping[str, Any]
"""A line of `vnuma run --events`."""

TEST = "test"

_TITLES = {
    "started": "{run} started",
    "trouble": "{run}: {vm} needs a person",
    "ended": "{run} ended",
    "paused": "{run} paused",
    "hours_missed": "{run} ended early: its allowed hours are over",
    "not_at_baseline": "{run}: a VM is not at its baseline",
    "new_findings": "new findings of the design check",
    "drift": "VMs are not as designed",
    "check_failed": "the design check could not be made",
    TEST: "a test of vnuma_notify",
}
_LONGEST_TITLE = 150


def event_line(event: str, run: str | None, *, simulated: bool | None, **more: object) -> dict[str, object]:
    """An event with the present time; `simulated` None means unknown."""
    return {
        "schema": "vnuma/event/1",
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "run": run,
        "simulated": simulated,
        "event": event,
        **more,
    }


def title(event: Event) -> str:
    """A title of one line without control characters."""
    words = "vnuma: " + _TITLES[event["event"]].format_map(event)
    line = " ".join(escaped(words).split())[:_LONGEST_TITLE]
    return f"SIMULATED {line}" if event["simulated"] else line


def text(event: Event) -> str:
    """What happened, the state of each VM, and what to do next."""
    vms = [vm["words"] or "" for vm in event.get("vms", ())]
    vms += [f"{vm['name']} is not at its baseline." for vm in event.get("vms", ()) if not vm["at_baseline"]]
    lines = [
        "SIMULATED: not measured on hardware" if event["simulated"] else "",
        event["words"],
        *vms,
        f"Next: {event['next']}" if event.get("next") else "",
        f"Ticket: {event['ticket']}" if event.get("ticket") else "",
        f"At {event['at']}",
    ]
    return escaped("\n".join(filter(None, lines)))


def as_mail(mail: Mail, event: Event) -> MIMEText:
    """A plain-text mail. Its subject is encoded as a whole, since a name may look like an encoded word."""
    made = MIMEText(text(event) + "\n", "plain", "utf-8")
    made["Subject"] = Header(title(event), "utf-8").encode()
    made["From"] = mail.sender
    made["To"] = ", ".join(mail.to)
    made["Date"] = formatdate()
    made["Message-ID"] = make_msgid(domain=mail.sender.rpartition("@")[2])
    made["Auto-Submitted"] = "auto-generated"
    return made


def as_json(event: Event) -> object:
    return event


def as_slack(event: Event) -> object:
    """For Slack, which treats three characters as markup: https://api.slack.com/docs/message-formatting"""
    words = f"{title(event)}\n{text(event)}"
    return {"text": words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def as_teams(event: Event) -> object:
    """An Adaptive Card for Teams workflows. A TextRun, unlike a TextBlock, has no Markdown.

    https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features
    """
    runs = [{"type": "TextRun", "text": title(event), "weight": "Bolder"}]
    blocks = [runs, *([{"type": "TextRun", "text": line}] for line in text(event).split("\n"))]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "RichTextBlock", "inlines": inlines} for inlines in blocks],
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [content]}


SHAPES = {"json": as_json, "slack": as_slack, "teams": as_teams}
