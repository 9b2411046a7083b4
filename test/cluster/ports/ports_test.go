package ports

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func reserve(t *testing.T) *Reservation {
	t.Helper()
	r, err := Reserve(loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Release)
	return r
}

func TestReservedPortIsClosedToStrangers(t *testing.T) {
	r := reserve(t)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", r.Port))
	if err == nil {
		l.Close()
		t.Errorf("port %d could be taken by a server that does not share ports", r.Port)
	}
}

func TestReservedPortIsOpenToItsServer(t *testing.T) {
	r := reserve(t)
	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if controlErr := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); controlErr != nil {
			return controlErr
		}
		return err
	}}
	l, err := sharing.Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", r.Port))
	if err != nil {
		t.Fatalf("the server of port %d cannot bind it: %v", r.Port, err)
	}
	defer l.Close()
	// The reservation does not listen, so every connection goes to the server.
	for range 20 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}

func TestReservationsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		r := reserve(t)
		if seen[r.Port] {
			t.Fatalf("port %d was reserved twice", r.Port)
		}
		seen[r.Port] = true
	}
}

func TestReleasedPortIsFreeAgain(t *testing.T) {
	r := reserve(t)
	r.Release()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", r.Port))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
