package ports

import (
	"net"
	"testing"
)

func TestAReservedAddressIsOursAloneAndListensWhenWeDo(t *testing.T) {
	seen := map[string]bool{}
	for range 300 {
		address, err := Reserve("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s was given twice", address)
		}
		seen[address] = true
	}
	for address := range seen {
		if connection, err := net.Dial("tcp", address); err == nil {
			connection.Close()
			t.Fatalf("%s answers before anybody listens", address)
		}
		for range 2 {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			connection, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			connection.Close()
			listener.Close()
		}
	}
}
