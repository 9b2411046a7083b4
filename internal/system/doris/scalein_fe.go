package doris

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// frontendComesBack lets a frontend that was dropped join anew: its Pod is made
// again, with its old metadata put aside.
func (p planner) frontendComesBack(s *scaling, l leaver) {
	message := l.name + " is made again and joins anew"
	p.waits(s, meta.ReasonProgressing, message)
	if l.pod == nil || string(l.pod.UID) != s.records[l.name].Pod || l.pod.DeletionTimestamp != nil {
		return
	}
	if p.leave.remaking || ready(l.pod) && !p.othersReady(s, l) {
		return // one at a time, as everywhere
	}
	p.leave.remaking = true
	p.replaceLeaving(l, message)
}

// othersReady tells whether all other Pods of a set are there and ready.
func (p planner) othersReady(s *scaling, l leaver) bool {
	n, pods := 0, p.world.Pods[string(s.kind)]
	for i := range pods {
		n += btoi(pods[i].Name != l.name && pods[i].DeletionTimestamp == nil && ready(&pods[i]))
	}
	return n == int(s.has)-1
}

// replaceLeaving lets the Pod of a frontend that leaves, or has left, be made again.
func (p planner) replaceLeaving(l leaver, why string) {
	p.build.Step(plan.Change{
		Object: plan.RefOf(l.pod), Cause: plan.CauseUser, Effect: plan.EffectRestartPod, Verdict: plan.VerdictApply,
		Reason: meta.ReasonMembersLeaving, Message: why,
	}, plan.Evict{Pod: l.pod.DeepCopy(), Reason: why})
}

// retiredKey begins the keys of the record that say of an ordinal that the metadata
// on its volume is that of a frontend which was taken out: it is put aside when a
// Pod next starts there, once for each token. See metadata_guard_r1.sh.
const retiredKey = "retired-"

// withRetired returns the record of the frontends with the metadata that is to be put
// aside: what it says already, and the frontends that have just been taken out. It
// says so before their Pods go.
func (p planner) withRetired(record *corev1.ConfigMap) *corev1.ConfigMap {
	out := record.DeepCopy()
	if live := p.world.OwnMaps[record.Name]; live != nil {
		for key, value := range live.Data {
			if strings.HasPrefix(key, retiredKey) {
				out.Data[key] = value
			}
		}
	}
	maps.Copy(out.Data, p.retired())
	return out
}

// retired are the frontends that were taken out and whose Pods are there yet.
func (p planner) retired() map[string]string {
	out := map[string]string{}
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentFE)]
	if set == nil || p.world.Database == nil || !p.world.Database.Known {
		return out
	}
	for name, record := range leaveRecords(set, p.world.Pods[string(dorisv1.ComponentFE)]) {
		l := p.leaverOf(dorisv1.ComponentFE, set, ordinalOf(name))
		if l.gone() && l.recorded {
			out[fmt.Sprint(retiredKey, l.ordinal)] = retiredToken(name, record)
		}
	}
	return out
}

// retiredToken names one leaving of one frontend.
func retiredToken(pod string, record leaveRecord) string {
	sum := sha256.Sum256([]byte(pod + " " + record.Member + " " + record.Since.UTC().String() + " " + record.Pod))
	return hex.EncodeToString(sum[:6])
}
