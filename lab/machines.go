package main

import (
	"log/slog"
	"net"
	"os"
	"slices"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/linux"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vcenter"
)

// machines are the SSH servers of the scenario's Linux machines, by name.
type machines []machine

type machine struct {
	name   string
	vm     string // the path of the VM whose guest it is; empty: none
	server *linux.Server
}

// startMachines starts those outside vCenter, and makes the guests of VMs one of the services.
func startMachines(
	played *scenario.Scenario, model cost.Model, dir string, inside *services, addresses []string,
) (machines, error) {
	var started machines
	diagnosis := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for i, stated := range played.Machines {
		config := linux.Config{
			Name: stated.Name, Scenario: played.Name, CPUModel: stated.CPUModel, OtherReader: -1, Real: stated.Real,
			Cost: model, Seed: played.Seed + int64(i),
		}
		if stated.OtherReader != nil {
			config.OtherReader = *stated.OtherReader
		}
		for _, node := range stated.Nodes {
			config.Nodes = append(config.Nodes, linux.Node(node))
		}
		log := diagnosis.With("machine", stated.Name)
		at := slices.IndexFunc(played.VMs, func(vm scenario.VM) bool { return vm.Name == stated.VM })
		if at < 0 {
			server, err := linux.Serve(linux.New(config), dir, log)
			if err != nil {
				started.close()
				return nil, err
			}
			started = append(started, machine{name: stated.Name, server: server})
			continue
		}
		guest, err := linux.NewGuest(config, net.JoinHostPort(addresses[at], "0"), dir, log)
		if err != nil {
			started.close()
			return nil, err
		}
		path := played.VMs[at].Path()
		inside.guests[path] = guest
		started = append(started, machine{name: stated.Name, vm: path, server: guest.Server()})
	}
	return started, nil
}

func (m machines) close() {
	for _, one := range m {
		one.server.Close()
	}
}

// events are their entries in the `ready` line.
func (m machines) events() []vcenter.Event {
	told := []vcenter.Event{}
	for _, one := range m {
		told = append(told, vcenter.Event{
			"name": one.name, "vm": one.vm, "host": one.server.Addr().IP.String(), "port": one.server.Addr().Port, "user": linux.User,
			"key_file": one.server.KeyFile(), "known_hosts": one.server.KnownHosts(),
		})
	}
	return told
}
