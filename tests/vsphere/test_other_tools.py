"""Programs of others against the lab's vSphere: two Ansible collections, Terraform's provider, and an SDK.

Each reads, changes, and finds its change when it reads again. They run where they are installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import LabFactory
from tests.support.lab import LabHandle
from tests.support.looking import settings_now

SCENARIO = Path(__file__).parents[1] / "estate/data/terraform/scenario.yml"
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")

pytestmark = pytest.mark.long


def login_of(lab: LabHandle) -> dict[str, Any]:
    """The login that modules of both collections take."""
    end = lab.vcenter
    login = {"hostname": end.host, "port": end.port, "username": end.user, "password": end.password}
    return {**login, "validate_certs": False}


COMMUNITY: list[dict[str, Any]] = [
    {"vmware_about_info": {}},
    {"vmware_vm_info": {"vm_type": "vm"}},
    {"vmware_guest_info": {"datacenter": "DC0", "name": "sql16"}},
    {"vmware_host_facts": {"esxi_hostname": "esx01"}},
    {"vmware_datastore_info": {"datacenter": "DC0"}},
    {
        "vmware_guest_powerstate": {
            "datacenter": "DC0",
            "name": "sql16",
            "state": "powered-off",
            "force": True,
        }
    },
    {
        "vmware_guest": {
            "datacenter": "DC0",
            "name": "sql16",
            "hardware": {"num_cpus": 16, "num_cpu_cores_per_socket": 8},
            "advanced_settings": [{"key": "numa.vcpu.maxPerVirtualNode", "value": "8"}],
        }
    },
]
VMWARE: list[dict[str, Any]] = [
    {"vm_resource_info": {}},
    {"vm_powerstate": {"datacenter": "DC0", "name": "sql16", "state": "powered-off"}},
    {"vm": {"datacenter": "DC0", "name": "sql16", "cpu": {"cores": 16, "cores_per_socket": 8}}},
    {
        "vm_advanced_settings": {
            "datacenter": "DC0",
            "name": "sql16",
            "state": "present",
            "settings": {"numa.vcpu.maxPerVirtualNode": "8"},
        }
    },
]


@pytest.mark.parametrize(
    ("collection", "tasks"), [("community.vmware", COMMUNITY), ("vmware.vmware", VMWARE)], ids=lambda one: one
)
def test_a_collection_reads_and_changes_a_vm_and_then_changes_nothing(
    lab: LabFactory, tmp_path: Path, collection: str, tasks: list[dict[str, Any]]
) -> None:
    """Ansible's modules decide by what they read whether they change anything."""
    running = lab()
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable},
        "tasks": [
            {f"{collection}.{module}": {**login_of(running), **options}}
            for task in tasks
            for module, options in task.items()
        ],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]))

    first, again = (changed(tmp_path / "play.yml", collection) for _ in range(2))

    assert first > 0
    assert again == 0
    now = settings_now(running)
    assert now["cores_per_socket"] == 8
    assert now["keys"]["numa.vcpu.maxPerVirtualNode"] == "8"


def changed(play: Path, collection: str) -> int:
    """How many tasks of the play changed something. Skips the test without the collection."""
    ran = subprocess.run(
        [PLAYBOOK, "-i", "localhost,", play], capture_output=True, text=True, timeout=300, check=False
    )
    if "couldn't resolve module/action" in ran.stderr + ran.stdout:
        pytest.skip(f"no collection here: {collection}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    recap = re.search(r"changed=(\d+)", ran.stdout)
    assert recap, ran.stdout
    return int(recap[1])


CONFIGURATION = """
terraform {
  required_providers {
    vsphere = { source = "vmware/vsphere" }
  }
}
provider "vsphere" { allow_unverified_ssl = true }
data "vsphere_datacenter" "dc" { name = "DC0" }
data "vsphere_compute_cluster" "prod" {
  name          = "prod"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_datastore" "local" {
  name          = "LocalDS_0"
  datacenter_id = data.vsphere_datacenter.dc.id
}
data "vsphere_network" "net" {
  name          = "VM Network"
  datacenter_id = data.vsphere_datacenter.dc.id
}
variable "cores" { type = number }
resource "vsphere_virtual_machine" "existing" {
  name                       = "existing"
  resource_pool_id           = data.vsphere_compute_cluster.prod.resource_pool_id
  datastore_id               = data.vsphere_datastore.local.id
  num_cpus                   = 16
  num_cores_per_socket       = var.cores
  memory                     = 65536
  guest_id                   = "windows2019srvNext_64Guest"
  extra_config               = { "numa.vcpu.maxPerVirtualNode" = var.cores }
  wait_for_guest_net_timeout = 0
  network_interface { network_id = data.vsphere_network.net.id }
  disk {
    label = "disk-202-0"
    size  = 40
  }
}
"""


def test_terraform_changes_a_vm_and_then_plans_nothing(lab: LabFactory, tmp_path: Path) -> None:
    """With `-detailed-exitcode`, a plan without changes ends with 0 and one with changes with 2."""
    program = shutil.which("tofu") or shutil.which("terraform")
    provider = shutil.which("terraform-provider-vsphere")
    if not program or not provider:
        pytest.skip("no Terraform with its vSphere provider here")
    running = lab(yaml.safe_load(SCENARIO.read_text()))
    (tmp_path / "main.tf").write_text(CONFIGURATION)
    folder = Path(provider).parent
    place = f'provider_installation {{\n dev_overrides {{\n "vmware/vsphere" = "{folder}"\n }}\n}}\n'
    (tmp_path / "rc").write_text(place)
    end = running.vcenter
    outside = os.environ | {
        "TF_CLI_CONFIG_FILE": str(tmp_path / "rc"),
        "VSPHERE_SERVER": f"{end.host}:{end.port}",
        "VSPHERE_USER": end.user,
        "VSPHERE_PASSWORD": end.password,
    }

    def terraform(verb: str, cores: int, *options: str) -> int:
        ran = subprocess.run(
            [program, verb, "-input=false", f"-var=cores={cores}", *options],
            cwd=tmp_path,
            env=outside,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode in (0, 2), ran.stdout + ran.stderr
        return ran.returncode

    terraform("import", 16, "vsphere_virtual_machine.existing", "/DC0/vm/existing")
    for cores in (8, 4):
        assert terraform("plan", cores, "-detailed-exitcode") == 2
        assert terraform("apply", cores, "-auto-approve") == 0
        assert terraform("plan", cores, "-detailed-exitcode") == 0
        now = settings_now(running, "existing")
        assert now["cores_per_socket"] == cores
        assert now["keys"]["numa.vcpu.maxPerVirtualNode"] == str(cores)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_sdk_tags_a_vm_and_finds_it_by_its_tag(lab: LabFactory) -> None:
    """VMware's SDK for Python calls over vAPI's JSON-RPC; a wrong password is its own `Unauthenticated`."""
    client = pytest.importorskip("vmware.vapi.vsphere.client", reason="no vSphere SDK here")
    errors = pytest.importorskip("com.vmware.vapi.std.errors_client")
    dynamic_id = pytest.importorskip("com.vmware.vapi.std_client").DynamicID
    session = pytest.importorskip("requests").Session()
    end = lab().vcenter
    session.trust_env, session.verify = False, str(end.ca_file)
    address = f"{end.host}:{end.port}"

    with pytest.raises(errors.Unauthenticated):
        client.create_vsphere_client(address, end.user, "wrong", session=session)
    vsphere = client.create_vsphere_client(address, end.user, end.password, session=session)
    categories, tags, on = vsphere.tagging.Category, vsphere.tagging.Tag, vsphere.tagging.TagAssociation
    category = categories.create(categories.CreateSpec("Tier", "", "SINGLE", {"VirtualMachine"}))
    tag = tags.create(tags.CreateSpec("Gold", "", category))
    vm = dynamic_id("VirtualMachine", "vm-1")
    on.attach(tag, vm)

    assert categories.get(category).associable_types == {"VirtualMachine"}
    assert tags.get(tag).category_id == category
    assert on.list_attached_objects(tag) == [vm]
    assert [found.tag_ids for found in on.list_attached_tags_on_objects([vm])] == [[tag]]
    with pytest.raises(errors.OperationNotFound):
        vsphere.vcenter.VM.list()
