package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Machine is a Linux machine reached by SSH: outside vCenter, or the guest of a VM.
type Machine struct {
	Name        string        `yaml:"name"`
	VM          string        `yaml:"vm"` // whose guest it is, with the nodes of each boot; empty: none
	CPUModel    string        `yaml:"cpu_model"`
	Nodes       []MachineNode `yaml:"nodes"`
	Real        []string      `yaml:"real"`         // programs of the machine that the lab runs on, which run there
	OtherReader *int          `yaml:"other_reader"` // node from which a program reads what was dropped from the cache
}

// MachineNode is one NUMA node of a machine.
type MachineNode struct {
	CPUs     int `yaml:"cpus"`
	MemoryMB int `yaml:"memory_mb"`
	UsedMB   int `yaml:"used_mb"`
}

// Closson (2009) gives two packages of four cores (SMT off), the memory of their nodes and how much was free. The CPU
// model is an assumption: the text says Xeon 5500.
func defaultMachine() Machine {
	return Machine{
		Name: "xeon5500", CPUModel: "Intel(R) Xeon(R) CPU X5570 @ 2.93GHz",
		Nodes: []MachineNode{{CPUs: 4, MemoryMB: 8052, UsedMB: 2106}, {CPUs: 4, MemoryMB: 8080, UsedMB: 93}},
	}
}

// UnmarshalYAML decodes over the published machine, so that a file states only what differs.
func (m *Machine) UnmarshalYAML(node *yaml.Node) error {
	type plain Machine // a type without this method
	*m = defaultMachine()
	return strictly(node, (*plain)(m))
}

// machineName matches what can be the name of a host, in an inventory and in a file name.
var machineName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

func (m Machine) check() error {
	switch {
	case !machineName.MatchString(m.Name):
		return errors.New("needs a name of lower-case letters, digits and hyphens")
	case len(m.Nodes) < 1 || len(m.Nodes) > 64:
		return fmt.Errorf("%d nodes: want 1 to 64", len(m.Nodes))
	case m.OtherReader != nil && (*m.OtherReader < 0 || *m.OtherReader >= len(m.Nodes)):
		return fmt.Errorf("other_reader %d: there is no such node", *m.OtherReader)
	}
	for number, node := range m.Nodes {
		if node.CPUs < 0 || node.CPUs > 1024 || node.MemoryMB < 0 || node.UsedMB < 0 || node.UsedMB > node.MemoryMB {
			return fmt.Errorf("node %d: cpus from 0 to 1024, and memory_mb that holds used_mb", number)
		}
	}
	return nil
}

func (s *Scenario) checkMachines() error {
	names, guests := map[string]bool{}, map[string]bool{}
	for _, vm := range s.VMs {
		names[vm.Name] = true
	}
	for _, machine := range s.Machines {
		if err := machine.check(); err != nil {
			return fmt.Errorf("machine %q: %w", machine.Name, err)
		}
		if machine.VM != "" {
			if !slices.ContainsFunc(s.VMs, func(vm VM) bool { return vm.Name == machine.VM }) || guests[machine.VM] {
				return fmt.Errorf("machine %q: vm %q must be a VM without another guest", machine.Name, machine.VM)
			}
			guests[machine.VM] = true
		}
		if names[machine.Name] && machine.Name != machine.VM {
			return fmt.Errorf("machine %q: the name is taken", machine.Name)
		}
		names[machine.Name] = true
	}
	return nil
}
