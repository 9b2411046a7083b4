package doris

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// content is what the Pods of one component mount of users' ConfigMaps.
type content struct {
	// maps are the ConfigMaps as the Pods shall see them, by name; copies names
	// the immutable copy of each.
	maps   map[string]*corev1.ConfigMap
	copies map[string]string
	// held tells that a changed ConfigMap is not followed (yet).
	held bool
	// approved tells that a person consented to follow the changed ones.
	approved bool
	// lost tells that the copy of what the Pods have is gone and cannot be made
	// again: what was read from it is in the record.
	lost bool
	// live names the copies that the Pods shall have without mounting them, where
	// they differ from those in copies; liveMaps is their content.
	live     map[string]string
	liveMaps map[string]*corev1.ConfigMap
	// changed are the differences of a changed content, and judged is how the
	// nodes stand to it; for the policy Auto only.
	changed []plan.Change
	judged  judgement
}

// contentNamed is the content of the copies that a record names.
func (p planner) contentNamed(copies map[string]string) map[string]*corev1.ConfigMap {
	out := map[string]*corev1.ConfigMap{}
	for name, copied := range copies {
		if cm := p.world.OwnMaps[copied]; cm != nil {
			out[name] = cm
		} else if cm := p.known[copied]; cm != nil {
			out[name] = cm
		}
	}
	return out
}

// contentOf chooses what the Pods of a component mount. A set that is there goes
// on with the content that it was rendered with until the policy of the resource,
// or a person, says otherwise.
func (p planner) contentOf(kind dorisv1.ComponentType) content {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
	recorded, known := readAccepted(p.remembers(kind))
	if set == nil && !known {
		recorded, known = p.contentInStatus(kind)
	}
	newest := recorded.newest()
	current := content{maps: map[string]*corev1.ConfigMap{}, copies: map[string]string{}}
	var changed []string
	for _, name := range mountedMaps(p.dc, kind) {
		now, had := p.world.ConfigMaps[name], newest[name]
		if now == nil { // gone: what the Pods have stays theirs
			if was := p.world.OwnMaps[had]; was != nil {
				current.add(name, was, had)
			}
			continue
		}
		current.add(name, now, copyName(p.dc.Name, now))
		if known && had != "" && had != current.copies[name] {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		follow, mount := p.followsContent(kind, set, changed, recorded, &current)
		if mount {
			return current
		}
		if !follow {
			current.keep(changed, recorded.newest(), p.world.OwnMaps)
		}
	}
	p.reloaded(kind, set, recorded, &current)
	return current
}

// reloaded keeps what is mounted where the content that the Pods shall have is
// set in their processes. A node that cannot be told needs the content mounted.
func (p planner) reloaded(kind dorisv1.ComponentType, set *appsv1.StatefulSet, recorded accepted, c *content) {
	if set == nil || c.lost || maps.Equal(c.copies, recorded.Content) {
		return
	}
	live := p.beside(recorded.Content, c.copies)
	if len(live) == 0 {
		return
	}
	if !c.held && len(c.changed) == 0 && p.judge(kind, set, recorded, c.maps, c.copies).road == restarts {
		return
	}
	c.live, c.liveMaps = live, map[string]*corev1.ConfigMap{}
	for name := range live {
		c.liveMaps[name] = c.maps[name]
		c.add(name, p.world.OwnMaps[recorded.Content[name]], recorded.Content[name])
	}
}

// beside names the copies that differ from those that are mounted.
func (p planner) beside(mounted, copies map[string]string) map[string]string {
	live := map[string]string{}
	for name, copied := range copies {
		if had := mounted[name]; had != "" && had != copied && p.world.OwnMaps[had] != nil {
			live[name] = copied
		}
	}
	return live
}

// keep goes back to the content that was recorded.
func (c *content) keep(names []string, recorded map[string]string, copies map[string]*corev1.ConfigMap) {
	c.held = true
	for _, name := range names {
		had := recorded[name]
		if was := copies[had]; was != nil {
			c.add(name, was, had)
			continue
		}
		c.lost = true
		c.copies[name] = had
		delete(c.maps, name)
	}
}

func (c *content) add(name string, cm *corev1.ConfigMap, copied string) {
	c.maps[name], c.copies[name] = cm, copied
}

// followsContent tells whether the Pods of a component shall get the changed
// content, and whether by a new template; it lists the changes that they shall not
// get unasked.
func (p planner) followsContent(kind dorisv1.ComponentType, set *appsv1.StatefulSet, names []string, recorded accepted, now *content) (follow, mount bool) {
	if set == nil {
		return false, false
	}
	policy := p.policyFor(kind, recorded)
	failed, stopped := p.stopped(kind)
	if policy == dorisv1.ConfigUpdateRestart && !stopped {
		return true, true
	}
	var changes []plan.Change
	for _, name := range names {
		changes = append(changes, contentChanges(p.dc, kind, p.world.OwnMaps[recorded.newest()[name]], now.maps[name])...)
	}
	if policy == dorisv1.ConfigUpdateAuto && !stopped {
		now.changed = changes
		return p.followsLive(kind, set, recorded, now)
	}
	for i := range changes {
		if stopped {
			changes[i].Reason, changes[i].Message = meta.ReasonMemberFailed, failed.said()
		}
	}
	now.approved = p.build.Hold(plan.Consents(set), changes)
	return now.approved, now.approved
}

// updatePolicy is what a changed configuration file leads to.
func updatePolicy(dc *dorisv1.DorisCluster) dorisv1.ConfigUpdatePolicy {
	switch {
	case dc.Spec.ConfigUpdatePolicy != "":
		return dc.Spec.ConfigUpdatePolicy
	case dc.Spec.EnableRestartWhenConfigChange:
		return dorisv1.ConfigUpdateRestart
	}
	return dorisv1.ConfigUpdateManual
}

// contentInStatus is what the Pods of a set that is gone had mounted.
func (p planner) contentInStatus(kind dorisv1.ComponentType) (accepted, bool) {
	for _, pin := range p.dc.Status.Workloads {
		if pin.Name == StatefulSetName(p.dc.Name, kind) {
			return accepted{Content: pin.Content}, true
		}
	}
	return accepted{}, false
}

// mountedMaps names the ConfigMaps of the user that a component mounts, sorted.
func mountedMaps(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType) []string {
	names := map[string]bool{}
	for _, r := range references(dc) {
		if r.component == kind && r.kind == "ConfigMap" {
			names[r.name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// copyName names the copy of a ConfigMap by its content.
func copyName(cluster string, cm *corev1.ConfigMap) string {
	text, err := json.Marshal([]any{cm.Data, cm.BinaryData})
	if err != nil {
		panic(fmt.Sprintf("digest of ConfigMap %s: %v", cm.Name, err)) // strings can be encoded
	}
	sum := sha256.Sum256(text)
	const longest = 253
	suffix := "-" + hex.EncodeToString(sum[:5])
	prefix := cluster + "-" + cm.Name
	return strings.TrimRight(prefix[:min(len(prefix), longest-len(suffix))], "-.") + suffix
}

// labelCopy marks the copies of ConfigMaps.
const labelCopy = meta.Prefix + "content-of"

// copyOf renders the immutable copy of a ConfigMap.
func copyOf(dc *dorisv1.DorisCluster, cm *corev1.ConfigMap, name string) *corev1.ConfigMap {
	o := objectMeta(dc, name, map[string]string{dorisv1.LabelOwner: dc.Name})
	o.Annotations = map[string]string{labelCopy: cm.Name}
	if of := cm.Annotations[labelCopy]; of != "" && cm.Name == name {
		o.Annotations[labelCopy] = of // it is the copy itself
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: o,
		Immutable: new(true), Data: maps.Clone(cm.Data), BinaryData: maps.Clone(cm.BinaryData),
	}
}

// wantCopies plans the copies that the templates of a component mount.
func (p planner) wantCopies(c content) {
	names := map[string]*corev1.ConfigMap{}
	for name, cm := range c.maps {
		names[c.copies[name]] = copyOf(p.dc, cm, c.copies[name])
	}
	for name, cm := range c.liveMaps {
		names[c.live[name]] = copyOf(p.dc, cm, c.live[name])
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name].Name == "" || p.copied[name] {
			continue
		}
		p.copied[name] = true
		p.want(names[name], live(p.world.OwnMaps, name), "content of ConfigMap "+names[name].Annotations[labelCopy]+" as the Pods see it")
	}
}
