package client

import (
	"context"
	"fmt"
	"strings"
)

// Master finds the frontend that is master, by asking the candidates in turn
// and then the one they name. It returns where to reach it and the list of
// frontends in its own words.
//
// A candidate that answers and says that it is itself the master is returned as
// it was named. So name single frontends, or use the answer at once: behind a
// Service the next connection may end elsewhere.
func (d *Doris) Master(ctx context.Context, candidates []Node) (Node, []Frontend, error) {
	var errs []error
	for _, at := range candidates {
		node, list, err := d.masterBy(ctx, at)
		if err == nil {
			return node, list, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 0 {
		return Node{}, nil, ErrNoMaster
	}
	return Node{}, nil, fmt.Errorf("find the master: %w", several(errs))
}

// several are errors that are said in one line.
type several []error

// Error implements error.
func (s several) Error() string {
	said := make([]string, 0, len(s))
	for _, err := range s {
		said = append(said, err.Error())
	}
	return strings.Join(said, "; ")
}

// Unwrap returns each of them.
func (s several) Unwrap() []error { return s }

// masterBy asks one frontend for the master, and the master whether it is so.
func (d *Doris) masterBy(ctx context.Context, at Node) (Node, []Frontend, error) {
	list, err := d.Frontends(ctx, at)
	if err != nil {
		return Node{}, nil, err
	}
	for _, f := range list {
		if !f.IsMaster {
			continue
		}
		if f.Connected {
			return at, list, nil
		}
		return d.confirmMaster(ctx, at, f)
	}
	return Node{}, nil, &Error{Op: "show frontends", Node: at, Kind: ErrNoMaster}
}

// confirmMaster connects to the frontend that another named as master. Versions
// that do not say which frontend answered are believed if its own row agrees.
func (d *Doris) confirmMaster(ctx context.Context, named Node, f Frontend) (Node, []Frontend, error) {
	at := Node{Host: f.Host, Port: f.QueryPort}
	if f.QueryPort == 0 {
		at.Port = named.Port // a frontend that never reported itself; all use the same
	}
	list, err := d.Frontends(ctx, at)
	if err != nil {
		return Node{}, nil, err
	}
	told := false
	for _, other := range list {
		told = told || other.Connected
	}
	for _, other := range list {
		same := other.Host == f.Host && other.EditLogPort == f.EditLogPort
		if other.IsMaster && same && (other.Connected || !told) {
			return at, list, nil
		}
	}
	return Node{}, nil, &Error{Op: "show frontends", Node: at, Kind: ErrNoMaster, Text: "the frontend that was named as master is not"}
}
