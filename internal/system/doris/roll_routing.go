package doris

import (
	"context"
	"fmt"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// Router says what backends get of the work.
type Router interface {
	// Route carries one statement out.
	Route(ctx context.Context, at databaseAddress, member client.Node, what client.Routing) error
}

// routeBackend says what one backend gets of the work.
type routeBackend struct {
	at     databaseAddress
	pod    string
	member client.Node
	what   client.Routing
}

// to says it in a word or two.
func (o routeBackend) to() string {
	for _, v := range []*bool{o.what.DisableQuery, o.what.DisableLoad} {
		if v != nil && *v {
			return "stopped"
		}
	}
	return "given back"
}

// key is by what a refusal is remembered.
func (o routeBackend) key() string { return "routing of " + o.member.String() }

// Describe says what is done.
func (o routeBackend) Describe() string {
	return fmt.Sprintf("queries and loads routed to %s (%s): %s", o.member, o.pod, o.to())
}

// routes carries one out. What is not done is seen when the database is asked again;
// what the database refuses is remembered for a while.
func (a *asker) routes(ctx context.Context, o routeBackend) error {
	router, can := a.nodes.(Router)
	if !can {
		return fmt.Errorf("doris cannot be asked to route: %s", o.Describe())
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	err := router.Route(ctx, o.at, o.member, o.what)
	return a.told(o.at, o.key(), err, answeredNo(err))
}

// Route implements Router.
func (r reached) Route(ctx context.Context, at databaseAddress, member client.Node, what client.Routing) error {
	doris, node, _, err := r.master(ctx, at)
	if err != nil {
		return err
	}
	return doris.Route(ctx, node, member, what)
}
