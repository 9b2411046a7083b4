package doris

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Secrets are compared key by key without their values being anywhere: what is
// recorded of a value is its HMAC, with a key that each cluster has in a Secret of its
// own. Without that key nobody can try guesses. The values are read, by name, only when
// the version of a Secret is not the recorded one.

// digestKeyName is the Secret with the key of the HMACs.
func digestKeyName(cluster string) string { return cluster + "-secret-digests" }

const (
	digestKeyEntry = "key"
	digestKeySize  = 32
	// digestPrefix marks an HMAC where it is recorded.
	digestPrefix = "hmac:"
)

// secretsRecord is what is recorded of the Secrets of a component.
type secretsRecord struct {
	// Key tells with which key the digests were made. Those of another one say
	// nothing.
	Key string                  `json:"key"`
	Of  map[string]secretRecord `json:"of"`
}

// secretRecord is what is recorded of one Secret.
type secretRecord struct {
	// Version is the identity of the object, and its version.
	Version string `json:"version"`
	// Keys has a digest of each value.
	Keys map[string]string `json:"keys,omitempty"`
}

// SecretView is what is observed of the Secrets that the processes of a cluster read
// when they start. No value is in it.
type SecretView struct {
	// Key is what digests are made with, from the cluster's own Secret, or drawn when
	// there is none.
	Key []byte
	// Versions are those of the Secrets that exist, Digests those of the values of
	// Secrets that had to be read, and Unread says why others could not be.
	Versions map[string]string
	Digests  map[string]map[string]string
	Unread   map[string]string
}

// processSecrets names the Secrets that the processes of a component read when they
// start: all keys where the list is nil. The account of the operator is not among them,
// since a new one is followed without a restart, nor are those for pulling images.
func processSecrets(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType) map[string][]string {
	spec, out := specOf(dc, kind), map[string][]string{}
	if spec == nil {
		return out
	}
	for _, e := range spec.EnvVars {
		if from := e.ValueFrom; from != nil && from.SecretKeyRef != nil && from.SecretKeyRef.Name != "" {
			out[from.SecretKeyRef.Name] = append(out[from.SecretKeyRef.Name], from.SecretKeyRef.Key)
		}
	}
	for _, m := range secretsOf(spec, fieldOf(kind)) {
		out[m.name] = nil
	}
	if k := dc.Spec.KerberosInfo; k != nil && k.KeytabSecretName != "" {
		out[k.KeytabSecretName] = nil
	}
	delete(out, "")
	return out
}

// of is what is recorded of a Secret by digests of a key.
func (r *secretsRecord) of(name, key string) (secretRecord, bool) {
	if r == nil || r.Key != key {
		return secretRecord{}, false
	}
	was, had := r.Of[name]
	return was, had
}

// keys are the digests alone: what a template stands for besides what it says.
func (r *secretsRecord) keys() map[string]map[string]string {
	if r == nil {
		return nil
	}
	out := map[string]map[string]string{}
	for name, of := range r.Of {
		out[name] = of.Keys
	}
	return out
}

// wantDigestKey plans the Secret with the key.
func (p planner) wantDigestKey() {
	p.unreadSecrets()
	key := p.world.ProcessSecrets.Key
	if key == nil {
		return
	}
	name := digestKeyName(p.dc.Name)
	p.want(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: objectMeta(p.dc, name, map[string]string{dorisv1.LabelOwner: p.dc.Name}),
		Immutable:  new(true), Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{digestKeyEntry: key},
	}, live(p.world.OwnSecrets, name), "key by which changed Secrets are known without their values")
}

// secretChange is a Secret that is not as the Pods of a component were made with it.
type secretChange struct {
	name     string
	was, now secretRecord
	// keys are those that differ; none where nobody could look.
	keys []string
}

// secretsNow is what would be recorded of the Secrets of a component now, and which
// of them differ from what is recorded. What was never recorded does not differ.
func (p planner) secretsNow(kind dorisv1.ComponentType, recorded accepted) (*secretsRecord, []secretChange) {
	view, id := p.world.ProcessSecrets, digestKeyID(p.world.ProcessSecrets.Key)
	counted := processSecrets(p.dc, kind)
	if len(counted) == 0 {
		return nil, nil
	}
	now, changes := &secretsRecord{Key: id, Of: map[string]secretRecord{}}, []secretChange(nil)
	for _, name := range sortedKeys(counted) {
		was, had := recorded.Secrets.of(name, id)
		digests, read := view.Digests[name]
		is := secretRecord{Version: view.Versions[name], Keys: digests}
		switch {
		case is.Version == "", is.Version == was.Version, view.Unread[name] != "":
			if had {
				now.Of[name] = was
			}
			continue
		case !read && !had: // it is recorded by whom may read it
			continue
		}
		now.Of[name] = is
		keys := differing(was.Keys, is.Keys, counted[name])
		if had && (!read || len(keys) > 0) {
			changes = append(changes, secretChange{name: name, was: was, now: is, keys: keys})
		}
	}
	if len(now.Of) == 0 {
		return recorded.Secrets, nil
	}
	return now, changes
}

// unreadSecrets names the Secrets that cannot be compared.
func (p planner) unreadSecrets() {
	for _, name := range sortedKeys(p.world.ProcessSecrets.Unread) {
		p.build.Find(plan.Finding{
			Severity: plan.Warning, Field: "Secret " + name, Reason: reasonSecretUnread,
			Message: "it has changed and cannot be compared with what the Pods started with: " + p.world.ProcessSecrets.Unread[name],
		})
	}
}

// reasonSecretUnread says that a Secret could not be read.
const reasonSecretUnread = "SecretNotReadable"

// differing lists the keys whose digests differ, of those that count (nil: of all).
func differing(was, is map[string]string, count []string) []string {
	var out []string
	for _, key := range unionKeys(was, is) {
		if was[key] != is[key] && (count == nil || slices.Contains(count, key)) {
			out = append(out, key)
		}
	}
	return out
}

// secrets is what becomes of the changed Secrets of a component.
type secrets struct {
	// now is the record with those that are followed, and quiet the one without, which
	// is kept while the template stays as it is.
	now, quiet *secretsRecord
	// followed are those that the Pods shall get by a restart.
	followed []plan.Change
	// approved tells that a person consented.
	approved bool
}

// secretsOfPods decides about changed Secrets as about changed configuration files: the
// policy follows them, or they are held until a person accepts. What the processes have
// read is read again only by a start, so nothing is milder.
func (p planner) secretsOfPods(kind dorisv1.ComponentType, set *appsv1.StatefulSet, recorded accepted) secrets {
	now, changed := p.secretsNow(kind, recorded)
	out := secrets{now: now, quiet: now}
	if set == nil || len(changed) == 0 {
		return out
	}
	out.quiet = &secretsRecord{Key: now.Key, Of: maps.Clone(now.Of)}
	changes := make([]plan.Change, 0, len(changed))
	for _, c := range changed {
		out.quiet.Of[c.name] = c.was
		changes = append(changes, p.changeOf(kind, c))
	}
	failed, stopped := p.stopped(kind)
	policy := updatePolicy(p.dc)
	if policy == dorisv1.ConfigUpdateManual || stopped {
		for i := range changes {
			changes[i].Message += fmt.Sprintf("; the Pods of %s that run go on with what they have read until a person accepts (spec.configUpdatePolicy is %s)", kind, policy)
			if stopped {
				changes[i].Reason, changes[i].Message = meta.ReasonMemberFailed, failed.said()
			}
		}
		if !p.build.Hold(plan.Consents(set), changes) {
			out.now = out.quiet
			return out
		}
		out.approved = true
	}
	out.followed = changes
	return out
}

// saySecrets lists the Secrets for which a template is changed.
func (p planner) saySecrets(w workload) {
	if !w.changes || w.back != nil {
		return
	}
	for _, c := range w.secrets.followed {
		if w.secrets.approved {
			return // said when it was held
		}
		c.Verdict, c.Effect = plan.VerdictApply, w.restart
		p.build.Note(c)
	}
}

// inTemplate are the changes of Secrets as those of a template: nothing but its stamp
// tells them.
func (s secrets) inTemplate() []diff.Field {
	if len(s.followed) == 0 {
		return nil
	}
	return []diff.Field{{Path: templateStamp, From: s.followed[0].From, To: s.followed[0].To}}
}

// secretsDigest is a digest of what the processes of a component would read now.
func (p planner) secretsDigest(kind dorisv1.ComponentType) string {
	recorded, _ := readAccepted(p.remembers(kind))
	now, _ := p.secretsNow(kind, recorded)
	if now == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(encoded(now.keys())))
	return hex.EncodeToString(sum[:digestLength])
}

// changeOf is a changed Secret as a change without a verdict. Values are in it by their
// version alone.
func (p planner) changeOf(kind dorisv1.ComponentType, c secretChange) plan.Change {
	said := "what its processes read of it has changed"
	if len(c.keys) > 0 {
		said = "changed: " + strings.Join(c.keys, ", ")
	}
	return plan.Change{
		Object: plan.Ref{Kind: "Secret", Namespace: p.dc.Namespace, Name: c.name}, Path: fmt.Sprintf("for %s: data", kind),
		From: "version " + recordedVersion(c.was), To: "version " + recordedVersion(c.now),
		Cause: plan.CauseConfig, Effect: plan.EffectRestartPod, Reason: reasonConfigUpdatePolicy, Message: said,
	}
}

func recordedVersion(r secretRecord) string {
	_, version, _ := strings.Cut(r.Version, " ")
	return version
}
