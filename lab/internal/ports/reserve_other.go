//go:build !linux

package ports

import "net"

// Reserve finds out which port 0 becomes. Elsewhere than on Linux a bound socket would keep our own
// listener away too, so nothing is held.
func Reserve(address string) (string, error) {
	probe, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	return probe.Addr().String(), probe.Close()
}
