package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// Around is what a VM has, besides its shape, that would spoil or break a study.
type Around struct {
	FaultTolerance  bool     `yaml:"fault_tolerance"`
	Snapshot        string   `yaml:"snapshot"` // the name of its one snapshot
	ChangeTracking  bool     `yaml:"change_tracking"`
	DisabledMethods []string `yaml:"disabled_methods"` // as the API names them: ReconfigVM_Task
	Devices         []string `yaml:"devices"`          // see AroundDevices
	Encrypted       bool     `yaml:"encrypted"`
	ManagedBy       string   `yaml:"managed_by"`   // the extension's key
	RunningTask     string   `yaml:"running_task"` // its description: VirtualMachine.migrate
	MovedMinutesAgo int      `yaml:"moved_minutes_ago"`
	GuestName       string   `yaml:"guest_name"` // what Tools say; empty: the VM's name
}

// AroundDevices are the devices that `around` can add.
var AroundDevices = []string{"raw_disk", "multi_writer_disk", "shared_bus", "passthrough", "vtpm"}

func (a Around) check() error {
	for _, device := range a.Devices {
		if !slices.Contains(AroundDevices, device) {
			return fmt.Errorf("around: device %q: want one of %s", device, strings.Join(AroundDevices, ", "))
		}
	}
	return nil
}

// SQLUse is what else a SQL Server is used for. Databases that are named and not there are made.
type SQLUse struct {
	AvailabilityGroup []string `yaml:"availability_group"` // databases in one
	Hadr              bool     `yaml:"hadr"`               // availability groups are enabled, whether or not there is one
	Clustered         bool     `yaml:"clustered"`
	Published         []string `yaml:"published"`   // databases that replication publishes
	LogShipped        []string `yaml:"log_shipped"` // primary databases of log shipping
	Backups           []string `yaml:"backups"`     // databases being backed up
	Sessions          []string `yaml:"sessions"`    // programs of other people's sessions
}
