package doris

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/observe"
)

// digester reads Secrets and remembers, for each cluster, the digests of the last
// version of those that it names and that are not as they are recorded.
type digester struct {
	read   SecretReader
	random io.Reader

	mu   sync.Mutex
	last map[types.NamespacedName]map[string]digested
}

type digested struct {
	version, key string
	digests      map[string]string
}

// ReadingSecrets returns the system with a way to read Secrets by name. Without one it
// plans by their versions alone.
func (s *System) ReadingSecrets(read SecretReader) *System {
	out := *s
	out.digests = &digester{read: read, random: rand.Reader, last: map[types.NamespacedName]map[string]digested{}}
	return &out
}

// Forget drops what is remembered of a cluster that is gone.
func (s *System) Forget(cluster types.NamespacedName) {
	if s.digests != nil {
		s.digests.keep(cluster, nil)
	}
}

// keep drops the digests of Secrets that a cluster need not be compared with any more.
func (d *digester) keep(cluster types.NamespacedName, needed map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.last[cluster], func(name string, _ digested) bool { return !needed[name] })
	if len(d.last[cluster]) == 0 {
		delete(d.last, cluster)
	}
}

// observeSecrets observes the Secrets that processes read.
func (s *System) observeSecrets(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster, w *World) error {
	view := SecretView{Versions: map[string]string{}, Digests: map[string]map[string]string{}, Unread: map[string]string{}}
	key := ownDigestKey(dc, w)
	needed, err := view.versions(ctx, r, dc, w.StatefulSets, digestKeyID(key))
	if err != nil {
		return err
	}
	cluster := types.NamespacedName{Namespace: dc.Namespace, Name: dc.Name}
	if s.digests != nil {
		s.digests.keep(cluster, needed)
	}
	if len(view.Versions) == 0 {
		return nil
	}
	if view.Key = key; key == nil {
		view.Key = make([]byte, digestKeySize)
		if _, err := io.ReadFull(s.digests.source(), view.Key); err != nil {
			return fmt.Errorf("drawing a key: %w", err)
		}
	}
	if s.digests != nil {
		for _, name := range sortedKeys(needed) {
			if err := s.digests.observe(ctx, cluster, name, &view); err != nil {
				return err
			}
		}
	}
	w.ProcessSecrets = view
	return nil
}

// versions fills in those of the Secrets that exist, and tells which are not as they
// are recorded.
func (v *SecretView) versions(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster, sets map[string]*appsv1.StatefulSet, key string) (needed map[string]bool, err error) {
	needed = map[string]bool{}
	for _, kind := range rendered {
		recorded, _ := readAccepted(sets[StatefulSetName(dc.Name, kind)])
		for _, name := range sortedKeys(processSecrets(dc, kind)) {
			secret, err := r.Secret(ctx, name)
			if err != nil {
				return nil, err
			}
			if secret == nil {
				continue
			}
			v.Versions[name] = string(secret.UID) + " " + secret.ResourceVersion
			if was, had := recorded.Secrets.of(name, key); !had || was.Version != v.Versions[name] {
				needed[name] = true
			}
		}
	}
	return needed, nil
}

// ownDigestKey is the key that the cluster has; nil if it has none.
func ownDigestKey(dc *dorisv1.DorisCluster, w *World) []byte {
	secret := w.OwnSecrets[digestKeyName(dc.Name)]
	if secret == nil || len(secret.Data[digestKeyEntry]) != digestKeySize {
		return nil
	}
	return secret.Data[digestKeyEntry]
}

func (d *digester) source() io.Reader {
	if d == nil {
		return rand.Reader
	}
	return d.random
}

// observe reads a Secret that a cluster names, unless its digests are known.
func (d *digester) observe(ctx context.Context, cluster types.NamespacedName, name string, view *SecretView) error {
	version, id := view.Versions[name], digestKeyID(view.Key)
	d.mu.Lock()
	known := d.last[cluster][name]
	d.mu.Unlock()
	if known.version == version && known.key == id {
		view.Digests[name] = known.digests
		return nil
	}
	data, err := d.read(ctx, cluster.Namespace, name)
	switch {
	case apierrors.IsForbidden(err):
		view.Unread[name] = "the operator may not read it"
		return nil
	case err != nil:
		return err
	case data == nil: // it has just gone; an event tells it
		delete(view.Versions, name)
		return nil
	}
	digests := map[string]string{}
	for entry, value := range data {
		digests[entry] = digestOf(view.Key, name, entry, value)
	}
	view.Digests[name] = digests
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last[cluster] == nil {
		d.last[cluster] = map[string]digested{}
	}
	d.last[cluster][name] = digested{version: version, key: id, digests: digests}
	return nil
}

// digestLength is how many bytes of a digest are kept.
const digestLength = 8

// digestOf is the HMAC of a value. The names are in it, so that equal passwords in two
// places do not show.
func digestOf(key []byte, secret, entry string, value []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%q %q ", secret, entry)
	mac.Write(value)
	return digestPrefix + hex.EncodeToString(mac.Sum(nil)[:digestLength])
}

// digestKeyID names a key without telling it.
func digestKeyID(key []byte) string {
	if key == nil {
		return ""
	}
	return digestOf(key, "", "", nil)
}
