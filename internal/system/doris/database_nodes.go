package doris

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// accounts keeps the accounts of clusters as long as their Secrets are the same, so
// that a database can be asked again and again without a request to the API server.
type accounts struct {
	mu    sync.Mutex
	known map[types.UID]keptAccount
	// masters are the frontends that were master, which are asked first.
	masters map[types.UID]client.Node
	// encrypted are the settings of encrypted connections.
	encrypted map[tlsKey]keptTLS
}

type keptAccount struct {
	version string
	client.Credentials
	// lacks says what that version is no account for.
	lacks *accountError
}

// AccountFault says why nobody can log in with what the Secret holds that a resource
// names as its account; nothing, where that may be.
func (r reached) AccountFault(ctx context.Context, dc *dorisv1.DorisCluster, secretVersion string) string {
	_, err := r.kept(ctx, dc, secretVersion)
	if lacks, is := errors.AsType[*accountError](err); is {
		return lacks.says
	}
	return ""
}

// kept is the account of a cluster: read anew when its Secret is another one, or
// when nobody knows which one it is.
func (r reached) kept(ctx context.Context, dc *dorisv1.DorisCluster, secretVersion string) (client.Credentials, error) {
	if dc.Spec.AuthSecret == "" || secretVersion == "" {
		return r.account(ctx, dc)
	}
	r.accounts.mu.Lock()
	last, known := r.accounts.known[dc.UID]
	r.accounts.mu.Unlock()
	version := dc.Spec.AuthSecret + " " + secretVersion
	if !known || last.version != version {
		account, err := r.account(ctx, dc)
		last = keptAccount{version: version, Credentials: account}
		if err != nil && !errors.As(err, &last.lacks) {
			return account, err
		}
		r.accounts.mu.Lock()
		r.accounts.known[dc.UID] = last
		r.accounts.mu.Unlock()
	}
	if last.lacks != nil {
		return client.Credentials{}, last.lacks
	}
	return last.Credentials, nil
}

// master logs in and finds the master among the frontends.
func (r reached) master(ctx context.Context, at databaseAddress) (*client.Doris, client.Node, []client.Frontend, error) {
	account, err := r.kept(ctx, at.cluster, at.account)
	if err != nil {
		return nil, client.Node{}, nil, err
	}
	opt, err := r.encrypted(ctx, at.cluster, at.tls, r.options(account))
	if err != nil {
		return nil, client.Node{}, nil, err
	}
	doris := client.New(opt)
	candidates := at.frontends
	r.accounts.mu.Lock()
	if was, known := r.accounts.masters[at.cluster.UID]; known {
		candidates = append([]client.Node{was}, candidates...)
	}
	r.accounts.mu.Unlock()
	node, frontends, err := doris.Master(ctx, candidates)
	r.accounts.mu.Lock()
	defer r.accounts.mu.Unlock()
	if delete(r.accounts.masters, at.cluster.UID); err == nil {
		r.accounts.masters[at.cluster.UID] = node
	}
	if errors.Is(err, client.ErrDenied) {
		err = fmt.Errorf("%s: %w", accountOf(at.cluster, account), err)
	}
	return doris, node, frontends, err
}

// Members implements Database.
func (r reached) Members(ctx context.Context, at databaseAddress, health bool) (membersAnswer, error) {
	doris, node, frontends, err := r.master(ctx, at)
	if err != nil {
		return membersAnswer{}, err
	}
	answer := membersAnswer{frontends: frontends}
	if at.brokers {
		if answer.brokers, err = doris.Brokers(ctx, node); err != nil {
			return answer, err
		}
	}
	if answer.backends, err = doris.Backends(ctx, node); err != nil || !health {
		return answer, err
	}
	answer.health, err = doris.TabletHealth(ctx, node)
	return answer, err
}

// MayDecommission implements Database.
func (r reached) MayDecommission(ctx context.Context, at databaseAddress, members []client.Node) error {
	doris, node, frontends, err := r.master(ctx, at)
	if err != nil {
		return err
	}
	master := masterWithWeb(frontends)
	if master == nil {
		return nil
	}
	if err := doris.MayDecommission(ctx, client.Node{Host: node.Host, Port: master.HTTPPort}, members); errors.Is(err, client.ErrRefused) {
		return err
	}
	return nil // the statement itself is refused where it must be
}

// masterWithWeb is the master, where it names the port at which it speaks HTTP.
func masterWithWeb(frontends []client.Frontend) *client.Frontend {
	for i := range frontends {
		if f := &frontends[i]; f.IsMaster && f.HTTPPort != 0 {
			return f
		}
	}
	return nil
}

// ChangeMember implements Database.
func (r reached) ChangeMember(ctx context.Context, at databaseAddress, change client.MemberChange, member client.Node) error {
	doris, node, _, err := r.master(ctx, at)
	if err != nil {
		return err
	}
	return doris.ChangeMember(ctx, node, change, member)
}
