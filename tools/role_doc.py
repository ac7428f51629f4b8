"""Write docs/reference/vcenter-role.md from the lists of privileges and rights in code.

python -m tools.role_doc
"""

from __future__ import annotations

from pathlib import Path

from vnuma.domain.vm.role import ELSEWHERE, LOGIN, ROLE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "vcenter-role.md"

_PLACES = {
    "datastore": "the VM's datastores",
    "cluster": "its host's cluster",
    "root": "the root folder",
    "attributes": "the VM",
}

_HEAD = """# The role for vCenter

What the account of `vnuma_vcenter` may do, and no more. This page is written by `tools/role_doc.py` from the
list that `vnuma doctor`, preflight and the playbook use.

On each VM under study, a role with the privileges below. Besides, the built-in role *Read-only* on the
root folder, propagating (or on the datacenter): its host, cluster, folders and neighbours are read.
"""

_PLAYBOOK = """## Making it

```sh
ansible-playbook vnuma.vnuma.vcenter_role -i INVENTORY --check --diff \\
  -e vnuma_admin_user=administrator@vsphere.local -e '{"vnuma_admin_password": {"env": "VCENTER_ADMIN"}}'
```

It makes or extends the role `vnuma`, gives it to the user of `vnuma_vcenter` on every VM of the inventory,
gives that user Read-only on the root folder if it has no permission there, and asks vCenter whether the
privileges hold (HasUserPrivilegeOnEntities). Without `--check` it does so; a second run changes nothing.
Privileges that somebody added to the role stay. Where `vnuma_vcenter` has a token or a session instead of a
user, say who gets the role: `-e vnuma_role_principal=USER@DOMAIN`.
"""


def markdown() -> str:
    """docs/reference/vcenter-role.md."""
    return "\n".join(
        [
            _HEAD,
            "| privilege | for |",
            "|---|---|",
            *(f"| {privilege} | {purpose} |" for privilege, purpose in ROLE.items()),
            "",
            "A study needs only those for the settings that its arms change, plus AdvancedConfig and power.",
            "`vnuma doctor` and preflight (P00) show what is missing on a VM.",
            "",
            "## What helps",
            "",
            "| privilege | on | for | without it |",
            "|---|---|---|---|",
            *(
                f"| {item.privilege} | {_PLACES[item.where]} | {item.purpose} | {item.without} |"
                for item in ELSEWHERE
            ),
            "",
            "`vnuma doctor` shows missing ones as optional.",
            "",
            _PLAYBOOK,
            "## The login for SQL Server",
            "",
            "| permission | since 2022 | for |",
            "|---|---|---|",
            *(f"| {one.permission} | {one.since_2022 or 'the same'} | {one.purpose} |" for one in LOGIN),
            "",
            "`vnuma doctor` and preflight (P00) show what is missing. Workloads and arms that need more",
            "say so (P29).",
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
