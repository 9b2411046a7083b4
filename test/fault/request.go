package fault

import (
	"net/http"
	"strings"
)

// request is what a request of the Kubernetes API asks for.
type request struct {
	verb, resource, subresource, namespace, name string
	watch                                        bool
}

// parse reads a request as the API server does. What is no request for
// resources has no resource.
func parse(r *http.Request) request {
	q := request{verb: r.Method, watch: isTrue(r.URL.Query().Get("watch"))}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return q
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.resource = parts[0]
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.subresource = parts[2]
	}
	return q
}

func isTrue(s string) bool { return s == "true" || s == "1" }

func (q request) writes() bool {
	switch q.verb {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return q.resource != ""
	}
	return false
}

// counted tells whether a write has a number: events and leases have none, and
// neither have questions that are asked by POST.
func (q request) counted() bool {
	return q.resource != "events" && q.resource != "leases" && !strings.HasSuffix(q.resource, "reviews")
}

func (q request) lists() bool {
	return q.verb == http.MethodGet && q.resource != "" && q.name == "" && !q.watch
}
