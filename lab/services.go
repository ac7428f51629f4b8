package main

import (
	"net"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vcenter"
)

const sqlUser = "sa"

// services are the SQL Servers inside the scenario's VMs.
type services struct {
	guests    map[string]guest.Service // by inventory path
	addresses map[string]*net.TCPAddr
}

func newServices(played *scenario.Scenario, password string) (*services, error) {
	made := &services{guests: map[string]guest.Service{}, addresses: map[string]*net.TCPAddr{}}
	for _, vm := range played.VMs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		made.addresses[vm.Path()] = l.Addr().(*net.TCPAddr)
		l.Close()
	}
	return made, nil
}

func (s *services) endpoint(vm scenario.VM) vcenter.Event {
	address := s.addresses[vm.Path()]
	return vcenter.Event{"host": address.IP.String(), "port": address.Port, "user": sqlUser}
}
