package story

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
)

// The roles that the operator has, by their file in config/rbac.
const (
	roleOperator = "operator"        // where it works
	roleLeader   = "leader-election" // in its own namespace
)

// Right is one thing that the operator may do.
type Right struct {
	Role string
	Verb string
	// Resource is GROUP/RESOURCE, or RESOURCE/SUBRESOURCE of the core group, as rules
	// have them.
	Group, Resource string
	// Name limits it to one object; empty for all.
	Name string
}

func (r Right) String() string {
	text := r.Role + ": " + r.Verb + " " + strings.TrimPrefix(r.Group+"/"+r.Resource, "/")
	if r.Name != "" {
		text += " " + r.Name
	}
	return text
}

// Granted are the rights that the roles of config/rbac grant to the operator.
func Granted(root string) ([]Right, error) {
	var out []Right
	for _, role := range []string{roleOperator, roleLeader} {
		text, err := os.ReadFile(filepath.Join(root, "config", "rbac", role+".yaml"))
		if err != nil {
			return nil, err
		}
		rules := len(out)
		for doc := range strings.SplitSeq(string(text), "\n---") {
			var r rbacv1.ClusterRole // a Role has the same rules
			if err := yaml.Unmarshal([]byte(doc), &r); err != nil {
				return nil, fmt.Errorf("%s: %w", role, err)
			}
			for _, rule := range r.Rules {
				out = append(out, Spread(role, rule)...)
			}
		}
		if len(out) == rules {
			return nil, fmt.Errorf("%s grants nothing", role)
		}
	}
	return out, nil
}

// Spread are the rights that one rule of a role grants.
func Spread(role string, rule rbacv1.PolicyRule) []Right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var out []Right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					out = append(out, Right{Role: role, Verb: verb, Group: group, Resource: resource, Name: name})
				}
			}
		}
	}
	return out
}

// Using is whose requests are looked at: those of one installation.
type Using struct {
	// Account is the whole name of its user.
	Account string
	// Own is the namespace that it runs in, and Works are those that it works in.
	Own   string
	Works []string
	// Lease is the name by which it differs from other installations.
	Lease string
}

// Used are the rights of all that the requests could not have been made without,
// sorted.
func (u Using) Used(rights []Right, requests []audit.Entry) []string {
	var out []string
	for _, r := range rights {
		if slices.ContainsFunc(requests, func(e audit.Entry) bool { return u.needs(r, e) }) {
			out = append(out, r.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// needs tells whether a request was granted by the right.
func (u Using) needs(r Right, e audit.Entry) bool {
	if e.User != u.Account || e.Code == http.StatusForbidden || e.Group != r.Group || e.Key().Resource != r.Resource || !asks(e, r.Verb) {
		return false
	}
	switch named := r.Name == "" || e.Name == strings.Replace(r.Name, AccountName, u.Lease, 1); {
	case r.Role == roleLeader:
		return named && e.Namespace == u.Own
	case r.Name != "": // wherever it is
		return named
	}
	return slices.Contains(u.Works, e.Namespace)
}

// asks tells whether a request asks for the verb. A server-side apply is a patch, and
// asks for a create as well where it makes the object.
func asks(e audit.Entry, verb string) bool {
	return e.Verb == verb || verb == "create" && e.Verb == "patch" && e.Code == http.StatusCreated
}
