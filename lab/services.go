package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/sqlserver"
	"vnuma.dev/lab/internal/vcenter"
)

const (
	sqlUser   = "sa"
	nodePorts = 2 // further ports of each SQL Server, for mapping to NUMA nodes
)

// services are what runs inside the scenario's VMs: SQL Servers, and Linux guests.
type services struct {
	guests map[string]guest.Service // by inventory path
	ports  map[string][]int         // each one's further ports
}

// modelOf is a scenario's cost model.
func modelOf(played *scenario.Scenario) (cost.Model, error) {
	text, err := played.CostYAML()
	if err != nil {
		return cost.Model{}, err
	}
	return cost.FromYAML(text)
}

func newServices(
	played *scenario.Scenario, model cost.Model, password string, addresses []string, certificate *tls.Certificate,
	keytab string,
) (*services, error) {
	made := &services{guests: map[string]guest.Service{}, ports: map[string][]int{}}
	diagnosis := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for i, vm := range played.VMs {
		if slices.ContainsFunc(played.Machines, func(one scenario.Machine) bool { return one.VM == vm.Name }) {
			continue
		}
		instance, err := sqlserver.New(sqlserver.Config{
			Address: net.JoinHostPort(addresses[i], "0"), User: sqlUser, Password: password,
			Version: vm.SQL.Version, Edition: fullEdition(vm.SQL.Edition), Scenario: played.Name,
			Cost: model, TimeScale: played.TimeScale, Seed: played.Seed + int64(i),
			WithoutColumns: played.WithoutColumns,
			SoftNUMA:       vm.SQL.SoftNUMA, AdventureWorks: vm.SQL.AdventureWorks, Use: sqlserver.Use(vm.SQL.Use), LogWritersSpread: vm.SQL.LogWriters == "spread",
			NodePorts: nodePorts, RegistryReadOnly: vm.SQL.RegistryReadOnly,
			SingleAddresses: !vm.SQL.ListenAll, DynamicPort: vm.SQL.DynamicPort, Linux: vm.SQL.Platform == "linux", Logins: vm.SQL.Logins,
			ClockAhead:  time.Duration(vm.Around.ClockMinutes * float64(time.Minute)),
			Certificate: certificate, Keytab: keytab,
			Log: diagnosis.With("vm", vm.Path()),
		})
		if err != nil {
			return nil, fmt.Errorf("SQL Server in %s: %w", vm.Path(), err)
		}
		made.guests[vm.Path()] = instance
		made.ports[vm.Path()] = instance.NodePorts()
	}
	return made, nil
}

// guestAddresses are those of the guests of this many VMs.
func guestAddresses(count int) []string {
	found := make([]string, count)
	for i := range found {
		found[i] = guestAddress(i)
	}
	return found
}

// guestAddress is the address of the i-th VM's guest, one per guest as in a real network: 127.0.0.1 of the first,
// 127.0.0.2 of the second. If the machine has no loopback address but 127.0.0.1, as macOS, all guests share that one.
func guestAddress(i int) string {
	const first, shared = 1, "127.0.0.1"
	own := net.IPv4(127, 0, byte((first+i)>>8), byte(first+i)).String()
	probe, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
	if err != nil {
		return shared
	}
	probe.Close()
	return own
}

// endpoint is where a VM's SQL Server answers; nil without one.
func (s *services) endpoint(vm scenario.VM) (vcenter.Event, error) {
	if s.ports[vm.Path()] == nil {
		return nil, nil
	}
	address, err := net.ResolveTCPAddr("tcp", s.guests[vm.Path()].Addr())
	if err != nil {
		return nil, err
	}
	return vcenter.Event{"host": address.IP.String(), "port": address.Port, "user": sqlUser,
		"node_ports": s.ports[vm.Path()]}, nil
}

// fullEdition is an edition's name in SERVERPROPERTY('Edition').
func fullEdition(edition string) string {
	if strings.Contains(edition, "Edition") {
		return edition
	}
	return edition + " Edition (64-bit)"
}
