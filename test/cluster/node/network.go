package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
)

// Network is the address plan of one node: a /16 of its own.
type Network struct {
	Number   int    // the second octet of all addresses
	Host     string // address of the host's end of the link
	Node     string // address of the node
	Pods     string // range of Pod addresses
	Gateway  string // address that Pods see as their gateway
	Services string // range of Service addresses
}

func networkNumber(n int) Network {
	return Network{
		Number:   n,
		Host:     fmt.Sprintf("10.%d.0.1", n),
		Node:     fmt.Sprintf("10.%d.0.2", n),
		Pods:     fmt.Sprintf("10.%d.64.0/18", n),
		Gateway:  fmt.Sprintf("10.%d.64.1", n),
		Services: fmt.Sprintf("10.%d.128.0/17", n),
	}
}

// HostLink and NodeLink are the names of the two ends of the link.
func (n Network) HostLink() string { return "flh" + strconv.Itoa(n.Number) }

// NodeLink returns the name of the node's end of the link.
func (n Network) NodeLink() string { return "fln" + strconv.Itoa(n.Number) }

// whole is the network's /16.
func (n Network) whole() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n.Number), 0, 0}), 16)
}

// Connect makes the link of a node in a network that no address or route of
// the host meets. The name of the link is the reservation of the network: of
// two clusters that choose the same number at the same time, one fails to
// make it and goes on to the next.
func Connect(ctx context.Context, book *ledger.Ledger) (Network, error) {
	const first, last = 180, 250
	for number := first; number <= last; number++ {
		network := networkNumber(number)
		taken, err := inUse(ctx)
		if err != nil {
			return Network{}, fmt.Errorf("find a free network: %w", err)
		}
		if overlaps(network.whole(), taken) {
			continue
		}
		made, err := network.makeLink(ctx, book)
		if err != nil {
			return Network{}, err
		}
		if made {
			return network, network.configureHost(ctx)
		}
	}
	return Network{}, fmt.Errorf("none of the networks 10.%d.0.0/16 to 10.%d.0.0/16 is free", first, last)
}

// makeLink makes the pair of interfaces. The hardware address is drawn and in
// the ledger before, so that nobody else's link of that name is taken for ours.
func (n Network) makeLink(ctx context.Context, book *ledger.Ledger) (made bool, err error) {
	link := ledger.Link{Name: n.HostLink(), MAC: drawMAC()}
	if err := book.Update(func(r *ledger.Record) {
		r.Links = []ledger.Link{link}
		r.Network = ledger.Network{Host: n.Host, Node: n.Node, Pods: n.Pods, Services: n.Services}
	}); err != nil {
		return false, err
	}
	_, err = run(ctx, "ip", "link", "add", link.Name, "address", link.MAC, "type", "veth", "peer", "name", n.NodeLink())
	if err != nil && strings.Contains(err.Error(), "File exists") {
		return false, nil
	}
	return err == nil, err
}

func (n Network) configureHost(ctx context.Context) error {
	return ipCommands(ctx,
		"addr add "+n.Host+"/24 dev "+n.HostLink(),
		"link set "+n.HostLink()+" up",
		"route add "+n.Pods+" via "+n.Node+" dev "+n.HostLink(),
		"route add "+n.Services+" via "+n.Node+" dev "+n.HostLink(),
	)
}

// configureNode is called by the node's init, in its network namespace.
func (n Network) configureNode(ctx context.Context) error {
	if err := awaitLink(ctx, n.NodeLink()); err != nil {
		return err
	}
	return ipCommands(ctx,
		"link set lo up",
		"addr add "+n.Node+"/24 dev "+n.NodeLink(),
		"link set "+n.NodeLink()+" up",
		"route add default via "+n.Host,
	)
}

// ipCommands runs commands of ip(8).
func ipCommands(ctx context.Context, commands ...string) error {
	for _, command := range commands {
		if _, err := run(ctx, "ip", strings.Fields(command)...); err != nil {
			return err
		}
	}
	return nil
}

func awaitLink(ctx context.Context, name string) error {
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, err := net.InterfaceByName(name); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("link %s has not come", name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// inUse lists the host's networks: of its addresses and of its routes.
func inUse(ctx context.Context) ([]netip.Prefix, error) {
	out, err := run(ctx, "ip", "-j", "-4", "route", "show", "table", "all")
	if err != nil {
		return nil, err
	}
	return routes(out)
}

// routes reads the destinations of ip's JSON. The table "local" is among them
// and names the host's own addresses.
func routes(out []byte) ([]netip.Prefix, error) {
	var listed []struct {
		Dst string `json:"dst"`
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		return nil, fmt.Errorf("read the routes: %w", err)
	}
	var prefixes []netip.Prefix
	for _, route := range listed {
		if prefix, err := netip.ParsePrefix(route.Dst); err == nil {
			prefixes = append(prefixes, prefix)
		} else if addr, err := netip.ParseAddr(route.Dst); err == nil {
			prefixes = append(prefixes, netip.PrefixFrom(addr, addr.BitLen()))
		} // else it is "default", which every network is part of
	}
	return prefixes, nil
}

func overlaps(network netip.Prefix, taken []netip.Prefix) bool {
	for _, t := range taken {
		if t.Bits() > 0 && t.Overlaps(network) {
			return true
		}
	}
	return false
}

// drawMAC draws a locally administered hardware address.
func drawMAC() string {
	mac := make(net.HardwareAddr, 6)
	_, _ = rand.Read(mac) // never fails, by its documentation
	mac[0] = 0x02
	return mac.String()
}

// present tells whether the interface is there and ours.
func present(link ledger.Link) bool {
	found, err := net.InterfaceByName(link.Name)
	return err == nil && found.HardwareAddr.String() == link.MAC
}

// RemoveLink deletes the link, if it is there and ours, and waits until it is
// gone. The kernel also deletes it by itself some time after the node's end.
func RemoveLink(ctx context.Context, link ledger.Link) error {
	for {
		if !present(link) {
			return nil
		}
		_, removeErr := run(ctx, "ip", "link", "delete", link.Name)
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("remove link %s: %w", link.Name, ctx.Err()), removeErr)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
