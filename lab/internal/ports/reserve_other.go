//go:build !linux

package ports

import "net"

// Reserve returns the port that 0 became. Outside Linux a bound socket would also block our own
// listener, so nothing is reserved.
func Reserve(address string) (string, error) {
	probe, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	return probe.Addr().String(), probe.Close()
}
