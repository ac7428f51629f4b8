// Package ports reserves the addresses on which a VM's software listens when it is on.
package ports

import (
	"fmt"
	"net/netip"
	"syscall"
)

// Reserve takes an address for the life of the program, and returns the port that 0 became. A socket that is bound
// but does not listen keeps others from the port, including clients' ephemeral ports, refuses connections, and
// permits a listener of this program.
func Reserve(address string) (string, error) {
	wanted, err := netip.ParseAddrPort(address)
	if err != nil || !wanted.Addr().Is4() {
		return "", fmt.Errorf("%s: want an IPv4 address and a port", address)
	}
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	err = syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(socket, &syscall.SockaddrInet4{Port: int(wanted.Port()), Addr: wanted.Addr().As4()})
	}
	var bound syscall.Sockaddr
	if err == nil {
		bound, err = syscall.Getsockname(socket)
	}
	if err != nil {
		syscall.Close(socket)
		return "", fmt.Errorf("%s: %w", address, err)
	}
	port := uint16(bound.(*syscall.SockaddrInet4).Port)
	return netip.AddrPortFrom(wanted.Addr(), port).String(), nil
}
