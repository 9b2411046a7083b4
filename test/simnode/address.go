package simnode

import (
	"fmt"
	"net/netip"
	"sync"
)

// addressPool hands out Pod IPs. A freed address comes back only after the
// whole range was used, so that a stale address reaches nobody.
type addressPool struct {
	mu     sync.Mutex
	within netip.Prefix
	last   netip.Addr
	used   map[netip.Addr]bool
}

func newAddressPool(within netip.Prefix) *addressPool {
	within = within.Masked()
	return &addressPool{within: within, last: within.Addr(), used: map[netip.Addr]bool{}}
}

func (p *addressPool) take() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.last
	for {
		p.last = p.last.Next()
		if !p.last.IsValid() || !p.within.Contains(p.last) {
			p.last = p.within.Addr().Next()
		}
		if !p.used[p.last] {
			p.used[p.last] = true
			return p.last.String(), nil
		}
		if p.last == first {
			return "", fmt.Errorf("no free pod address in %s", p.within)
		}
	}
}

// reserve marks an address as used that an earlier run gave out.
func (p *addressPool) reserve(text string) {
	if addr, err := netip.ParseAddr(text); err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.used[addr] = true
	}
}

func (p *addressPool) free(text string) {
	if addr, err := netip.ParseAddr(text); err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.used, addr)
	}
}
