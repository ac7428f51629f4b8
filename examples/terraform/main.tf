# A SQL Server VM as it is often asked for; docs/check.md shows how its design is checked and put right.
terraform {
  required_providers {
    vsphere = {
      source  = "vmware/vsphere"
      version = "~> 2.12"
    }
  }
}

variable "resource_pool_id" { type = string }
variable "datastore_id" { type = string }
variable "network_id" { type = string }

resource "vsphere_virtual_machine" "sql" {
  name             = "sql16"
  resource_pool_id = var.resource_pool_id
  datastore_id     = var.datastore_id
  guest_id         = "windows2019srvNext_64Guest"
  hardware_version = 19

  num_cpus             = 24
  num_cores_per_socket = 8
  memory               = 262144
  cpu_hot_add_enabled  = true

  network_interface {
    network_id = var.network_id
  }
  disk {
    label = "system"
    size  = 200
  }
}
