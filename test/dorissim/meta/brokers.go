package meta

import (
	"fmt"
	"slices"
)

// AddBroker announces a broker.
func (s *State) AddBroker(name, addr string) error {
	host, port, err := SplitAddr(addr)
	if err != nil {
		return err
	}
	b := Broker{Name: name, Host: host, Port: port}
	if slices.Contains(s.Brokers, b) {
		return fmt.Errorf("Broker with name %s and address %s already exists", name, addr)
	}
	s.Brokers = append(s.Brokers, b)
	return nil
}

// DropBroker removes a broker.
func (s *State) DropBroker(name, addr string) error {
	n := len(s.Brokers)
	s.Brokers = slices.DeleteFunc(s.Brokers, func(b Broker) bool { return b.Name == name && b.Addr() == addr })
	if len(s.Brokers) == n {
		return fmt.Errorf("broker %s has no address %s", name, addr)
	}
	return nil
}
