package client

import (
	"context"
	"errors"
	"strings"
)

// Broker is a row of SHOW BROKER. What a version does not show is zero.
type Broker struct {
	// Name is shared by all brokers that loads may use by it.
	Name  string
	Host  string
	Port  int32
	Alive bool
}

// Node is where the broker listens, as statements name it.
func (b Broker) Node() Node { return Node{Host: b.Host, Port: b.Port} }

// Brokers lists the brokers as a frontend knows them.
func (d *Doris) Brokers(ctx context.Context, at Node) ([]Broker, error) {
	st := statement{op: "show brokers", sql: "SHOW BROKER"}
	t, err := d.query(ctx, at, st)
	if err != nil {
		return nil, err
	}
	out, err := brokers(t)
	if err != nil {
		return nil, &Error{Op: st.op, Node: at, Kind: ErrAnswer, Text: err.Error()}
	}
	return out, nil
}

func brokers(t table) ([]Broker, error) {
	out := make([]Broker, 0, len(t.rows))
	for _, r := range t.rows {
		b := Broker{Name: r.text("name"), Host: r.text("host", "ip", "hostname"), Port: r.port("port"), Alive: r.yes("alive")}
		if b.Name == "" || b.Host == "" || b.Port == 0 {
			return nil, errors.New("a row has no readable name, host and port")
		}
		out = append(out, b)
	}
	return out, nil
}

// DropBroker takes one broker of a name out.
func DropBroker(name string) MemberChange {
	return MemberChange(dropBroker + "`" + strings.ReplaceAll(name, "`", "``") + "`")
}

const dropBroker = "DROP BROKER "

// OfBroker tells whether a change is about a broker.
func (c MemberChange) OfBroker() bool { return strings.HasPrefix(string(c), dropBroker) }
