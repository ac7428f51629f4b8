package scenario

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Around is what a VM has apart from its shape that would spoil or break a study.
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
	GuestName       string   `yaml:"guest_name"` // the name from Tools; empty: the VM's name

	// PoolMemoryLimitMB puts the VM into its own resource pool with this limit; 0: no such pool.
	PoolMemoryLimitMB int64 `yaml:"pool_memory_limit_mb"`

	VApp string `yaml:"vapp"` // its own vApp in its folder; empty: none

	// GuestAddresses are what Tools report: nil, where SQL Server listens; others as with a proxy or a container.
	GuestAddresses []string `yaml:"guest_addresses"`
	UpMinutes      float64  `yaml:"up_minutes"`    // how long the VM, and SQL Server in it, have been up when the lab starts
	ClockMinutes   float64  `yaml:"clock_minutes"` // how far the guest's clock is ahead; below 0: behind

	VMMonitoring string `yaml:"vm_monitoring"` // its own HA setting; empty: its cluster's

	// What its counters report of every vCPU's time, in percent; 0: as on a quiet host.
	CPUReadyPercent float64 `yaml:"cpu_ready_percent"`
	CoStopPercent   float64 `yaml:"co_stop_percent"`
}

// AroundDevices are the devices that `around` can add.
var AroundDevices = []string{"raw_disk", "multi_writer_disk", "shared_bus", Passthrough, "vtpm"}

// Passthrough is a device that makes a power-on need all memory reserved.
const Passthrough = "passthrough"

func (a Around) check() error {
	for _, device := range a.Devices {
		if !slices.Contains(AroundDevices, device) {
			return fmt.Errorf("around: device %q: want one of %s", device, strings.Join(AroundDevices, ", "))
		}
	}
	for _, address := range a.GuestAddresses {
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("around: guest_addresses: %w", err)
		}
	}
	if a.UpMinutes < 0 {
		return errors.New("around: up_minutes cannot be negative")
	}
	return nil
}

// SQLUse is what else a SQL Server is used for. Missing databases that are named are created.
type SQLUse struct {
	AvailabilityGroup []string `yaml:"availability_group"` // databases in one
	Hadr              bool     `yaml:"hadr"`               // availability groups are enabled, whether or not there is one
	Clustered         bool     `yaml:"clustered"`
	Published         []string `yaml:"published"`   // databases that replication publishes
	LogShipped        []string `yaml:"log_shipped"` // primary databases of log shipping
	Backups           []string `yaml:"backups"`     // databases being backed up
	Sessions          []string `yaml:"sessions"`    // programs of other people's sessions
}
