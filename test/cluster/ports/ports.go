// Package ports reserves free TCP ports for servers that are started later.
//
// A port that was only looked up may be taken by the time its server binds it,
// and then two clusters on one machine meet. A reservation therefore keeps the
// port bound, without listening, until the server is up: nobody else gets it
// from the kernel, while a server started with SO_REUSEPORT (as the Kubernetes
// servers and etcd can be) binds it beside the reservation.
package ports

import (
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reservation is one bound port.
type Reservation struct {
	Port int
	fd   int
}

// Reserve binds a free port of the IPv4 address.
func Reserve(addr netip.Addr) (*Reservation, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	r := &Reservation{fd: fd}
	if err := r.bind(addr); err != nil {
		r.Release()
		return nil, fmt.Errorf("reserve a port on %s: %w", addr, err)
	}
	return r, nil
}

func (r *Reservation) bind(addr netip.Addr) error {
	if err := syscall.SetsockoptInt(r.fd, syscall.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := syscall.Bind(r.fd, &syscall.SockaddrInet4{Addr: addr.As4()}); err != nil {
		return err
	}
	bound, err := syscall.Getsockname(r.fd)
	if err != nil {
		return err
	}
	r.Port = bound.(*syscall.SockaddrInet4).Port
	return nil
}

// Release gives the port up; a server that has bound it meanwhile keeps it.
func (r *Reservation) Release() {
	if r.fd >= 0 {
		syscall.Close(r.fd)
		r.fd = -1
	}
}
