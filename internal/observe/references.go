package observe

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// referred is one object that some custom resource names.
type referred struct {
	kind string // "ConfigMap" or "Secret"
	key  types.NamespacedName
}

// entry is what is known of a referred object. A nil object that is fresh
// means that the object does not exist.
type entry struct {
	fresh     bool
	changes   uint64 // counts announcements, so that a slow read is not kept
	version   string
	configMap *corev1.ConfigMap
	secret    *metav1.PartialObjectMetadata
	users     map[types.NamespacedName]struct{}
}

// References holds the ConfigMaps and Secrets that the custom resources of one
// system name, and nothing of any other. It is safe for concurrent use.
type References struct {
	live   client.Reader
	notify func(types.NamespacedName)

	mu      sync.Mutex
	entries map[referred]*entry
	byUser  map[types.NamespacedName]map[referred]struct{}
}

// NewReferences returns an empty set. Content is read from live, which must
// not be a cache; notify is called with each custom resource whose reference
// changed.
func NewReferences(live client.Reader, notify func(types.NamespacedName)) *References {
	return &References{
		live: live, notify: notify,
		entries: map[referred]*entry{},
		byUser:  map[types.NamespacedName]map[referred]struct{}{},
	}
}

// Lease is the view of one reconcile of one custom resource. What it read is
// what the custom resource refers to from Close on.
type Lease struct {
	refs *References
	user types.NamespacedName
	used map[referred]struct{}
}

// Lease starts the view of one reconcile.
func (r *References) Lease(user types.NamespacedName) *Lease {
	return &Lease{refs: r, user: user, used: map[referred]struct{}{}}
}

// Close makes what was read through the lease the references of its user.
func (l *Lease) Close() { l.refs.replace(l.user, l.used) }

// Forget drops all references of a custom resource that is gone.
func (r *References) Forget(user types.NamespacedName) { r.replace(user, nil) }

func (r *References) replace(user types.NamespacedName, used map[referred]struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ref := range r.byUser[user] {
		if _, still := used[ref]; still {
			continue
		}
		if e := r.entries[ref]; e != nil {
			delete(e.users, user)
			if len(e.users) == 0 {
				delete(r.entries, ref)
			}
		}
	}
	if len(used) == 0 {
		delete(r.byUser, user)
		return
	}
	r.byUser[user] = used
}

// ConfigMap returns the content, nil when there is none of that name.
func (l *Lease) ConfigMap(ctx context.Context, key types.NamespacedName) (*corev1.ConfigMap, error) {
	ref := referred{kind: "ConfigMap", key: key}
	e, seen := l.refs.use(l.user, ref)
	l.used[ref] = struct{}{}
	if e.fresh {
		return e.configMap, nil
	}
	cm, err := getConfigMap(ctx, l.refs.live, key)
	if err != nil {
		return nil, err
	}
	fetched := entry{configMap: cm}
	if cm != nil {
		fetched.version = cm.ResourceVersion
	}
	l.refs.keep(ref, seen, fetched)
	return cm, nil
}

// Secret returns the metadata, nil when there is none of that name.
func (l *Lease) Secret(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	ref := referred{kind: "Secret", key: key}
	e, seen := l.refs.use(l.user, ref)
	l.used[ref] = struct{}{}
	if e.fresh {
		return e.secret, nil
	}
	s, err := getSecret(ctx, l.refs.live, key)
	if err != nil {
		return nil, err
	}
	fetched := entry{secret: s}
	if s != nil {
		fetched.version = s.ResourceVersion
	}
	l.refs.keep(ref, seen, fetched)
	return s, nil
}

// use registers the user before anything is read, so that no change after the
// read goes unannounced. It returns a copy of the entry and its change count.
func (r *References) use(user types.NamespacedName, ref referred) (entry, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[ref]
	if e == nil {
		e = &entry{users: map[types.NamespacedName]struct{}{}}
		r.entries[ref] = e
	}
	e.users[user] = struct{}{}
	if r.byUser[user] == nil {
		r.byUser[user] = map[referred]struct{}{}
	}
	r.byUser[user][ref] = struct{}{}
	return *e, e.changes
}

func (r *References) keep(ref referred, seen uint64, fetched entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[ref]
	if e == nil || e.changes != seen {
		return // it changed while it was read; the announcement asked for another round
	}
	e.fresh, e.version, e.configMap, e.secret = true, fetched.version, fetched.configMap, fetched.secret
}

// announce tells that a referred object now has this version; empty when it is
// gone. Objects that nobody names cost nothing.
func (r *References) announce(ref referred, version string) {
	for _, u := range r.invalidate(ref, version) {
		r.notify(u)
	}
}

func (r *References) invalidate(ref referred, version string) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[ref]
	if e == nil || (e.fresh && e.version == version) {
		return nil
	}
	e.changes++
	e.fresh, e.configMap, e.secret = false, nil, nil
	users := make([]types.NamespacedName, 0, len(e.users))
	for u := range e.users {
		users = append(users, u)
	}
	return users
}

// named returns the referred objects of one kind, within one namespace unless
// it is empty.
func (r *References) named(kind, namespace string) []referred {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []referred
	for ref := range r.entries {
		if ref.kind == kind && (namespace == "" || ref.key.Namespace == namespace) {
			out = append(out, ref)
		}
	}
	return out
}
