package observe

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// referred is one object that some custom resource names.
type referred struct {
	kind string // "ConfigMap", "Secret" or "PersistentVolumeClaim"
	key  types.NamespacedName
}

// content is what was read of a referred object. None of them is set when the
// object does not exist.
type content struct {
	version   string
	configMap *corev1.ConfigMap
	secret    *metav1.PartialObjectMetadata
	claim     *corev1.PersistentVolumeClaim
}

// entry is what is known of a referred object:
//
//	stale ──use──▶ being read ──kept──▶ fresh
//	  ▲                │ changed while it was read
//	  └────────────────┴──────announced change──┘
type entry struct {
	fresh bool
	content
	// changes counts announcements and announced is what the last one said, so
	// that a read which they overtook is not kept.
	changes   uint64
	announced string
	reading   chan struct{} // closed when the read under way ends; nil when there is none
	users     map[types.NamespacedName]struct{}
}

// References holds the ConfigMaps, Secrets and claims that the custom resources of one
// system name, and nothing of any other. However many custom resources name an
// object, it is read once for each of its changes. It is safe for concurrent
// use.
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
// what the custom resource refers to from Close on. A custom resource has one
// lease at a time.
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
	c, err := l.read(ctx, referred{kind: "ConfigMap", key: key}, func() (content, error) {
		cm, err := getConfigMap(ctx, l.refs.live, key)
		if cm == nil {
			return content{}, err
		}
		return content{version: cm.ResourceVersion, configMap: cm}, err
	})
	return c.configMap, err
}

// Secret returns the metadata, nil when there is none of that name.
func (l *Lease) Secret(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	c, err := l.read(ctx, referred{kind: "Secret", key: key}, func() (content, error) {
		s, err := getSecret(ctx, l.refs.live, key)
		if s == nil {
			return content{}, err
		}
		return content{version: s.ResourceVersion, secret: s}, err
	})
	return c.secret, err
}

// Claim returns the claim, nil when there is none of that name.
func (l *Lease) Claim(ctx context.Context, key types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	c, err := l.read(ctx, referred{kind: "PersistentVolumeClaim", key: key}, func() (content, error) {
		claim, err := getClaim(ctx, l.refs.live, key)
		if claim == nil {
			return content{}, err
		}
		return content{version: claim.ResourceVersion, claim: claim}, err
	})
	return c.claim, err
}

// read returns what is known of a referred object, or reads it. While somebody
// else reads it, that result is waited for.
func (l *Lease) read(ctx context.Context, ref referred, get func() (content, error)) (content, error) {
	l.used[ref] = struct{}{}
	for {
		known, seen, others := l.refs.use(l.user, ref)
		switch {
		case known != nil:
			return *known, nil
		case others != nil:
			select {
			case <-others:
				continue
			case <-ctx.Done():
				return content{}, ctx.Err()
			}
		}
		return l.readNow(ref, seen, get)
	}
}

func (l *Lease) readNow(ref referred, seen uint64, get func() (content, error)) (c content, err error) {
	kept := false
	defer func() { l.refs.readDone(ref, seen, c, kept) }() // also when get panics
	if c, err = get(); err != nil {
		return content{}, err
	}
	kept = true
	return c, nil
}

// use registers the user before anything is read, so that no change after the
// read goes unannounced. It returns what is known; else a channel to wait on
// while somebody else reads; else neither, and the caller is to read and to
// call readDone with the change count.
func (r *References) use(user types.NamespacedName, ref referred) (known *content, seen uint64, others <-chan struct{}) {
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
	switch {
	case e.fresh:
		c := e.content
		return &c, e.changes, nil
	case e.reading != nil:
		return nil, e.changes, e.reading
	}
	e.reading = make(chan struct{})
	return nil, e.changes, nil
}

// readDone ends a read that use began. The content is not kept when a change
// was announced meanwhile that it does not hold: the announcement asked for
// another round.
func (r *References) readDone(ref referred, seen uint64, c content, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[ref]
	if e == nil || e.reading == nil {
		return
	}
	close(e.reading)
	e.reading = nil
	overtaken := e.changes != seen && (e.announced == "" || !known(c.version, e.announced))
	if ok && !overtaken {
		e.fresh, e.content = true, c
	}
}

// Announce tells that the object of a kind and name now has this version;
// empty when it is gone. Objects that nobody names cost nothing.
func (r *References) Announce(kind string, key types.NamespacedName, version string) {
	r.announce(referred{kind: kind, key: key}, version)
}

func (r *References) announce(ref referred, version string) {
	for _, u := range r.invalidate(ref, version) {
		r.notify(u)
	}
}

func (r *References) invalidate(ref referred, version string) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[ref]
	if e == nil || (e.fresh && known(e.version, version)) {
		return nil
	}
	e.changes++
	e.fresh, e.content, e.announced = false, content{}, version
	users := make([]types.NamespacedName, 0, len(e.users))
	for u := range e.users {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b types.NamespacedName) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	return users
}

// known tells whether an announced version is no news: it is the one that was
// read, or an older one, from a watch that lags behind the read.
func known(read, announced string) bool {
	if read == announced {
		return true
	}
	if read == "" || announced == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(announced, read)
	return err == nil && order < 0
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
