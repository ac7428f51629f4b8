"""Every verb with its line in `vnuma --help`: what is done first comes first."""

from __future__ import annotations

VERBS = {
    "Prepare": {
        "init": "Write an inventory; passwords stay references",
        "doctor": "Check driver, vCenter, privileges, SQL Server",
        "demo": "Run a whole study on the lab",
        "setup": "Install what this machine lacks",
        "store": "Create a store on PostgreSQL, or copy one",
        "lab": "Start, stop and disturb the embedded lab",
    },
    "Look ahead": {
        "check": "Check VMs and hosts against the design rules",
        "predict": "Predict the NUMA topology that a guest will see",
        "advise": "Suggest topologies, best first, with reasons",
        "plan": "Show what a study would change and what blocks it",
        "power": "Show how many boots are needed to detect an effect",
        "inventory": "Save a vCenter's VMs and hosts for vnuma check",
    },
    "Measure": {
        "run": "Run a study, or continue one (--resume)",
        "status": "Show runs, their progress, and VMs not at baseline",
        "stop": "Ask a run to stop; its VMs are restored",
        "restore": "Restore every VM that is not at its baseline",
        "baseline": "Show a VM's saved configuration, or what differs",
    },
    "Read": {
        "results": "Show medians, differences and verdicts",
        "report": "Write a page, picture or PDF of a run",
        "serve": "Show runs live in a browser, read-only",
        "compare": "Compare runs of a study: two, or many hosts",
        "export": "Export a run to one file, which can be read anywhere",
        "reanalyse": "Re-analyse a published table of medians",
    },
    "Inspect": {
        "evidence": "Read a vmware.log or a tool's output",
        "contract": "Check vnuma's assumptions against SQL Server or vCenter",
        "schema": "Print the schema of studies or of results",
        "version": "Show the versions of vnuma and what it uses",
        "audit": "Show who changed what on which VM, and when",
    },
}
"""By heading; each line fits on 80 columns."""

NAMES = tuple(name for verbs in VERBS.values() for name in verbs)
