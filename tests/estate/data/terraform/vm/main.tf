terraform {
  required_providers {
    vsphere = { source = "vmware/vsphere" }
  }
}

variable "pool" { type = string }
variable "store" { type = string }
variable "net" { type = string }

resource "vsphere_virtual_machine" "dw" {
  count                = 2
  name                 = "dw${count.index}"
  resource_pool_id     = var.pool
  datastore_id         = var.store
  num_cpus             = 16
  num_cores_per_socket = 16
  memory               = 65536
  hardware_version     = 20
  network_interface { network_id = var.net }
  disk {
    label = "disk0"
    size  = 40
  }
}
