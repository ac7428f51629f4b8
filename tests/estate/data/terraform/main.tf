# Planned by OpenTofu 1.12.6 and terraform-provider-vsphere (b45b5b4) against the lab (scenario.yml), where `existing`
# and `replaced` had been imported; plan.json and state.json are `tofu show -json`.
terraform {
  required_providers {
    vsphere = { source = "vmware/vsphere" }
  }
}

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

data "vsphere_virtual_machine" "template" {
  name          = "template"
  datacenter_id = data.vsphere_datacenter.dc.id
}

locals {
  pool  = data.vsphere_compute_cluster.prod.resource_pool_id
  store = data.vsphere_datastore.local.id
  net   = data.vsphere_network.net.id
}

resource "terraform_data" "later" { input = "8" }

variable "secret" {
  type      = string
  sensitive = true
  default   = "8"
}

# A new VM, with nothing left open.
resource "vsphere_virtual_machine" "sql" {
  name                 = "sql16"
  resource_pool_id     = local.pool
  datastore_id         = local.store
  num_cpus             = 16
  num_cores_per_socket = 16
  memory               = 65536
  hardware_version     = 20
  guest_id             = "windows2019srvNext_64Guest"
  network_interface { network_id = local.net }
  disk {
    label = "disk0"
    size  = 40
  }
}

# What is known only after apply, and what is sensitive.
resource "vsphere_virtual_machine" "later" {
  name             = terraform_data.later.id
  resource_pool_id = local.pool
  datastore_id     = local.store
  num_cpus         = length(terraform_data.later.id)
  memory           = 65536
  extra_config     = { "numa.vcpu.maxPerVirtualNode" = terraform_data.later.output }
  network_interface { network_id = local.net }
  disk {
    label = "disk0"
    size  = 40
  }
}

resource "vsphere_virtual_machine" "secret" {
  name             = "secret"
  resource_pool_id = local.pool
  datastore_id     = local.store
  num_cpus         = tonumber(var.secret)
  memory           = 65536
  hardware_version = 20
  extra_config     = { "numa.nodeAffinity" = var.secret, "numa.vcpu.preferHT" = "TRUE" }
  network_interface { network_id = local.net }
  disk {
    label = "disk0"
    size  = 40
  }
}

resource "vsphere_virtual_machine" "clone" {
  name                 = "clone"
  resource_pool_id     = local.pool
  datastore_id         = local.store
  num_cpus             = 24
  num_cores_per_socket = 12
  memory               = 65536
  guest_id             = data.vsphere_virtual_machine.template.guest_id
  network_interface { network_id = local.net }
  disk {
    label = "disk0"
    size  = 40
  }
  clone { template_uuid = data.vsphere_virtual_machine.template.id }
}

# Both exist: one changes, and one is deleted and created.
resource "vsphere_virtual_machine" "existing" {
  name                 = "existing"
  resource_pool_id     = local.pool
  datastore_id         = local.store
  num_cpus             = 24
  num_cores_per_socket = 12
  memory               = 65536
  guest_id             = "windows2019srvNext_64Guest"
  network_interface { network_id = local.net }
  disk {
    label = "disk0"
    size  = 40
  }
}

resource "vsphere_virtual_machine" "replaced" {
  name                 = "replaced"
  resource_pool_id     = local.pool
  datastore_id         = local.store
  num_cpus             = 16
  num_cores_per_socket = 8
  memory               = 65536
  guest_id             = "windows2019srvNext_64Guest"
  network_interface { network_id = local.net }
  disk {
    label = "disk0"
    size  = 40
  }
}

module "site" {
  for_each = toset(["a"])
  source   = "./vm"
  pool     = local.pool
  store    = local.store
  net      = local.net
}
