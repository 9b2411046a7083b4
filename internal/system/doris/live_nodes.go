package doris

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// SecretReader reads the data of the one Secret of a name; nil if there is none.
type SecretReader func(ctx context.Context, namespace, name string) (map[string][]byte, error)

// callTimeout bounds one call to a node.
const callTimeout = 5 * time.Second

// connectTimeout bounds the opening of a connection. It is short, since a node that
// cannot be reached delays all else that is to be done in its cluster.
const connectTimeout = 2 * time.Second

// Dial opens a connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// reached are nodes that are reached by the network.
type reached struct {
	dial   Dial
	secret SecretReader
	// accounts are kept for what is asked again and again.
	accounts *accounts
}

// NewNodes returns the nodes of clusters as they are reached by a dialer, with the
// account that each resource names. The account is read anew whenever its Secret is
// another one, or nobody knows which one it is, so that a rotated password is followed.
func NewNodes(dial Dial, secret SecretReader) Nodes {
	return reached{dial: dial, secret: secret, accounts: &accounts{known: map[types.UID]keptAccount{}, masters: map[types.UID]client.Node{}, encrypted: map[tlsKey]keptTLS{}}}
}

// Settings implements Nodes.
func (r reached) Settings(ctx context.Context, at nodeAddress) ([]setting.Item, error) {
	if at.kind == dorisv1.ComponentFE {
		doris, err := r.withAccount(ctx, at)
		if err != nil {
			return nil, err
		}
		return doris.FrontendConfig(ctx, at.sqlNode())
	}
	var items []setting.Item
	err := r.backend(ctx, at, func(doris *client.Doris) (err error) {
		items, err = doris.BackendConfig(ctx, at.webNode())
		return err
	})
	return items, err
}

// Set implements Nodes.
func (r reached) Set(ctx context.Context, at nodeAddress, c setting.Change) error {
	var outcome client.Outcome
	var err error
	if at.kind == dorisv1.ComponentFE {
		outcome, err = r.setFrontend(ctx, at, c)
	} else {
		err = r.backend(ctx, at, func(doris *client.Doris) (err error) {
			outcome, err = doris.ChangeBackend(ctx, at.webNode(), c.Key, c.Value)
			return err
		})
	}
	switch {
	case errors.Is(err, client.ErrRefused), errors.Is(err, client.ErrInput):
		return &refusedError{reason: err.Error()}
	case err != nil:
		return err
	case outcome != client.Applied:
		return &refusedError{reason: fmt.Sprintf("it was accepted, and what the node reports is not it (%s)", outcome)}
	}
	return nil
}

// setFrontend sets a setting on the frontend that is asked. One that only the
// master acts on is set on each by another way, since every one may become it.
func (r reached) setFrontend(ctx context.Context, at nodeAddress, c setting.Change) (client.Outcome, error) {
	doris, err := r.withAccount(ctx, at)
	if err != nil {
		return "", err
	}
	if c.MasterOnly {
		return doris.ChangeFrontendLocal(ctx, at.webNode(), at.sqlNode(), c.Key, c.Value)
	}
	return doris.ChangeFrontend(ctx, at.sqlNode(), c.Key, c.Value)
}

// backend asks a backend without an account first: few want one, and a password
// that is not needed is not sent.
func (r reached) backend(ctx context.Context, at nodeAddress, do func(*client.Doris) error) error {
	opt, err := r.encrypted(ctx, at.cluster, at.tls, r.options(client.Credentials{}))
	if err != nil {
		return err
	}
	err = do(client.New(opt))
	if !errors.Is(err, client.ErrDenied) {
		return err
	}
	doris, err := r.withAccount(ctx, at)
	if err != nil {
		return err
	}
	return do(doris)
}

func (r reached) withAccount(ctx context.Context, at nodeAddress) (*client.Doris, error) {
	account, err := r.kept(ctx, at.cluster, at.account)
	if err != nil {
		return nil, err
	}
	opt, err := r.encrypted(ctx, at.cluster, at.tls, r.options(account))
	if err != nil {
		return nil, err
	}
	return client.New(opt), nil
}

// options are those of one call.
func (r reached) options(account client.Credentials) client.Options {
	return client.Options{Credentials: account, Dial: r.dial, ConnectTimeout: connectTimeout, CallTimeout: callTimeout}
}

// account is whom the operator logs in as: the account of the Secret that the
// resource names, the one that it holds itself, or root without a password.
func (r reached) account(ctx context.Context, dc *dorisv1.DorisCluster) (client.Credentials, error) {
	switch {
	case dc.Spec.AuthSecret != "":
		data, err := r.secret(ctx, dc.Namespace, dc.Spec.AuthSecret)
		if err != nil {
			return client.Credentials{}, err
		}
		if data == nil {
			return client.Credentials{}, fmt.Errorf("Secret %q does not exist: %w", dc.Spec.AuthSecret, client.ErrDenied)
		}
		user := strings.TrimRight(string(data[corev1.BasicAuthUsernameKey]), "\n")
		if user == "" {
			user = defaultUser
		}
		if lacks := lackingIn(data, user); lacks != "" {
			return client.Credentials{}, &accountError{fmt.Sprintf(
				"spec.authSecret names Secret %q, which has no key %s: give it the keys username and password of an account of the database (type kubernetes.io/basic-auth), or change the field",
				dc.Spec.AuthSecret, lacks)}
		}
		return client.Credentials{User: user, Password: strings.TrimRight(string(data[corev1.BasicAuthPasswordKey]), "\n")}, nil
	case dc.Spec.AdminUser != nil && dc.Spec.AdminUser.Name != "":
		return client.Credentials{User: dc.Spec.AdminUser.Name, Password: dc.Spec.AdminUser.Password}, nil
	}
	return client.Credentials{User: defaultUser}, nil
}

// accountError says that a Secret does not hold an account.
type accountError struct{ says string }

func (e *accountError) Error() string { return e.says }

// Unwrap tells that nobody can log in with it.
func (e *accountError) Unwrap() error { return client.ErrDenied }

// lackingIn names the keys that the Secret of an account lacks. That of root needs no
// password, which is how Doris begins.
func lackingIn(data map[string][]byte, user string) string {
	_, named := data[corev1.BasicAuthUsernameKey]
	_, secret := data[corev1.BasicAuthPasswordKey]
	switch {
	case !named && !secret:
		return corev1.BasicAuthUsernameKey + " and no key " + corev1.BasicAuthPasswordKey
	case !secret && user != defaultUser:
		return corev1.BasicAuthPasswordKey
	}
	return ""
}

// accountOf names an account and where it comes from.
func accountOf(dc *dorisv1.DorisCluster, account client.Credentials) string {
	if dc.Spec.AuthSecret != "" {
		return fmt.Sprintf("%s of Secret %q (spec.authSecret)", account, dc.Spec.AuthSecret)
	}
	return account.String()
}

func (n nodeAddress) sqlNode() client.Node { return client.Node{Host: n.host, Port: n.query} }

func (n nodeAddress) webNode() client.Node { return client.Node{Host: n.host, Port: n.http} }
