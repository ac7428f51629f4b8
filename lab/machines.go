package main

import (
	"log/slog"
	"os"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/linux"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vcenter"
)

// machines are the SSH servers of the scenario's Linux machines, by name.
type machines []machine

type machine struct {
	name   string
	server *linux.Server
}

func startMachines(played *scenario.Scenario, model cost.Model, dir string) (machines, error) {
	var started machines
	diagnosis := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for i, stated := range played.Machines {
		config := linux.Config{
			Name: stated.Name, Scenario: played.Name, CPUModel: stated.CPUModel, OtherReader: -1,
			Cost: model, Seed: played.Seed + int64(i),
		}
		if stated.OtherReader != nil {
			config.OtherReader = *stated.OtherReader
		}
		for _, node := range stated.Nodes {
			config.Nodes = append(config.Nodes, linux.Node(node))
		}
		server, err := linux.Serve(linux.New(config), dir, diagnosis.With("machine", stated.Name))
		if err != nil {
			started.close()
			return nil, err
		}
		started = append(started, machine{stated.Name, server})
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
			"name": one.name, "host": "127.0.0.1", "port": one.server.Port(), "user": linux.User,
			"key_file": one.server.KeyFile(), "known_hosts": one.server.KnownHosts(),
		})
	}
	return told
}
