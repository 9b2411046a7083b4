package doris

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

const onEmptyDir = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 3, image: "apache/doris:fe-1"}
  beSpec: {replicas: 3, image: "apache/doris:be-1"}
`

var backends = []string{"doris-be-2", "doris-be-1", "doris-be-0"}

func image(tag string) func(*dorisv1.DorisClusterSpec) {
	return func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-" + tag }
}

func (w *world) gone(t *testing.T, want []string, why string) {
	t.Helper()
	if diff := cmp.Diff(want, w.evicts); diff != "" {
		t.Errorf("%s: Pods that went (-want +got):\n%s", why, diff)
	}
	w.evicts = nil
}

// TestConsent edits the image of backends whose data goes with their Pods.
func TestConsent(t *testing.T) {
	t.Parallel()
	w := settled(t, onEmptyDir)
	w.edit(image("2"))
	p := w.settle()
	w.gone(t, nil, "held")
	digest := onlyDigest(t, p, "StatefulSet/doris-be")
	for _, c := range p.HeldSets()[0].Changes {
		if c.Effect != plan.EffectDataLoss || c.Cause != plan.CauseUser {
			t.Errorf("held: %+v", c)
		}
	}
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %q: a held change does not make it False", got)
	}

	w.approve("000000000000")
	p = w.settle()
	w.gone(t, nil, "another digest")
	if !slices.ContainsFunc(p.Findings, func(f plan.Finding) bool {
		return f.Reason == meta.ReasonStaleApproval && strings.Contains(f.Message, digest)
	}) {
		t.Errorf("the stale approval is not named: %v", p.Findings)
	}

	w.approve(digest)
	w.settle()
	w.gone(t, backends, "approved")
	if got := w.set("doris-be").Annotations[meta.AnnotationConsents]; got != "1" {
		t.Errorf("consents used: %q", got)
	}

	// The annotation is still there. Going back and forth is two new changes.
	w.edit(image("1"))
	w.settle()
	w.edit(image("2"))
	w.settle()
	w.edit(image("1"))
	p = w.settle()
	w.gone(t, nil, "the same edit again")
	if onlyDigest(t, p, "StatefulSet/doris-be") == digest {
		t.Error("the same digest again: the old consent would count")
	}

	// Consent is taken back before anything starts.
	w.approve(onlyDigest(t, p, "StatefulSet/doris-be"))
	delete(w.dc.Annotations, meta.AnnotationApprove)
	w.settle()
	w.gone(t, nil, "taken back")
}

// TestANewerRendering upgrades the operator, accepts for one component, and
// downgrades.
func TestANewerRendering(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	present, version := w.system, w.store.Now().Version
	w.system = present.WithFuture(func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.EnableServiceLinks = new(false) })
	p := w.settle()
	w.gone(t, nil, "upgrade")
	if now := w.store.Now().Version; now != version {
		t.Errorf("%d writes at the upgrade", now-version)
	}
	fe, be := onlyDigest(t, p, "StatefulSet/doris-fe"), onlyDigest(t, p, "StatefulSet/doris-be")
	if fe == be {
		t.Fatal("the two offers have one digest")
	}
	w.system = present
	w.settle()
	w.gone(t, nil, "downgrade")

	w.system = present.WithFuture(w.future())
	w.approve(be)
	w.settle()
	w.gone(t, backends, "accepted for the backends")
	if got := w.set("doris-be").Annotations[meta.AnnotationRevision]; got != "2" {
		t.Errorf("revision %q", got)
	}
	if got := w.set("doris-fe").Annotations[meta.AnnotationRevision]; got != "1" {
		t.Errorf("frontends: revision %q", got)
	}
	version = w.store.Now().Version
	w.system = present
	w.edit(image("2"))
	p = w.settle()
	w.gone(t, nil, "downgrade after the acceptance")
	if now := w.store.Now().Version; now != version {
		t.Errorf("%d writes after the downgrade", now-version)
	}
	if len(p.Unsupported()) != 1 || !strings.Contains(p.Unsupported()[0].Message, "newer version") {
		t.Errorf("findings %v", p.Findings)
	}
	w.system = present.WithFuture(w.future())
	w.settle()
	w.gone(t, backends, "the newer version is back and the image is followed")
}

func (w *world) future() func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.EnableServiceLinks = new(false) }
}

const withConf = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-1", persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 3, image: "apache/doris:be-1", configMapInfo: {configMapName: be-conf}, persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: be-conf}
data: {be.conf: "max_tablet_version_num = 2000\npassword_x = hunter2\n", notes: old}
`

func confText(text string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Data["be.conf"] = text }
}

func mounted(w *world) string {
	for _, v := range w.set("doris-be").Spec.Template.Spec.Volumes {
		if v.Name == "be-conf" {
			return v.ConfigMap.Name
		}
	}
	w.Fatalf("be-conf is not mounted")
	return ""
}

// TestContent edits a ConfigMap that the backends mount.
func TestContent(t *testing.T) {
	t.Parallel()
	const changed = "max_tablet_version_num = 3000\npassword_x = hunter3\n"
	t.Run("manual: nothing moves until a person accepts", func(t *testing.T) {
		w := settled(t, withConf)
		first := mounted(w)
		if first == "be-conf" || !*object(w, first, &corev1.ConfigMap{}).Immutable {
			t.Fatalf("the backends mount %s", first)
		}
		stranger(w, "be-conf", &corev1.ConfigMap{}, confText(changed))
		p := w.settle()
		w.gone(t, nil, "held")
		want := []string{
			`for be: data["be.conf"].max_tablet_version_num config restart-pod hold`,
			`for be: data["be.conf"].password_x config restart-pod hold`,
		}
		if diff := cmp.Diff(want, changesOf(p, "ConfigMap/be-conf")); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if strings.Contains(printPlan(p), "hunter") {
			t.Errorf("a password is printed:\n%s", printPlan(p))
		}
		// An unrelated edit rolls with the old content.
		w.edit(image("2"))
		w.settle()
		w.gone(t, backends, "image")
		if mounted(w) != first {
			t.Errorf("the content rode along: %s", mounted(w))
		}
		w.approve(onlyDigest(t, w.settle(), "ConfigMap/be-conf"))
		p = w.settle()
		w.gone(t, backends, "approved")
		if mounted(w) == first || len(p.Held()) > 0 {
			t.Errorf("the content is %s, held %v", mounted(w), p.Held())
		}
	})
	t.Run("restart: it is followed, the last content wins", func(t *testing.T) {
		w := settled(t, withConf)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.EnableRestartWhenConfigChange = true })
		w.settle()
		w.gone(t, nil, "the policy")
		stranger(w, "be-conf", &corev1.ConfigMap{}, confText(changed))
		w.reconcile()
		w.controllers()
		w.reconcile() // the first goes
		stranger(w, "be-conf", &corev1.ConfigMap{}, confText("max_tablet_version_num = 4000\n"))
		w.settle()
		for _, name := range backends {
			pod := object(w, name, &corev1.Pod{})
			if got := pod.Annotations[meta.AnnotationTemplate]; got != w.set("doris-be").Spec.Template.Annotations[meta.AnnotationTemplate] {
				t.Errorf("%s is on template %s", name, got)
			}
		}
		if got := object(w, mounted(w), &corev1.ConfigMap{}).Data["be.conf"]; got != "max_tablet_version_num = 4000\n" {
			t.Errorf("the backends have %q", got)
		}
	})
	t.Run("an edit back is no change", func(t *testing.T) {
		w := settled(t, withConf)
		was := object(w, "be-conf", &corev1.ConfigMap{}).Data["be.conf"]
		stranger(w, "be-conf", &corev1.ConfigMap{}, confText(changed))
		w.settle()
		stranger(w, "be-conf", &corev1.ConfigMap{}, confText(was))
		if p := w.settle(); len(p.Changes) > 0 {
			t.Errorf("changes:\n%s", printPlan(p))
		}
	})
	t.Run("the copy is deleted and the original too: it is kept as far as possible", func(t *testing.T) {
		w := settled(t, withConf)
		first := mounted(w)
		stranger(w, "be-conf", &corev1.ConfigMap{}, confText(changed))
		cm := object(w, first, &corev1.ConfigMap{})
		w.must(w.store.Delete(keyOf(cm), cm.UID, false))
		p := w.settle()
		w.gone(t, nil, "copy deleted")
		if mounted(w) != first || len(p.HeldSets()) != 1 {
			t.Errorf("the backends mount %s; held:\n%s", mounted(w), printPlan(p))
		}
	})
	t.Run("a data path in a followed ConfigMap is refused", func(t *testing.T) {
		w := settled(t, withConf)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.ConfigUpdatePolicy = dorisv1.ConfigUpdateRestart })
		stranger(w, "be-conf", &corev1.ConfigMap{}, confText("storage_root_path = /elsewhere\n"))
		p := w.settle()
		w.gone(t, nil, "refused")
		if len(p.Refused()) == 0 || p.Refused()[0].Field != "spec.beSpec.configMapInfo" {
			t.Errorf("findings %v", p.Findings)
		}
		stranger(w, "be-conf", &corev1.ConfigMap{}, confText("max_tablet_version_num = 2001\n"))
		w.settle()
		w.gone(t, backends, "mended")
	})
}

// TestIdentityOfMembersStays edits how frontends that exist know each other.
func TestIdentityOfMembersStays(t *testing.T) {
	t.Parallel()
	named := strings.Replace(threeByThree, "feSpec: {", "feSpec: {configMapInfo: {configMapName: fe-conf}, ", 1) +
		"\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: fe-conf}\ndata: {fe.conf: \"enable_fqdn_mode = true\\n\"}\n"
	w := settled(t, named)
	set := func(value string) {
		stranger(w, "fe-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["fe.conf"] = "enable_fqdn_mode = " + value + "\n" })
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.ConfigUpdatePolicy = dorisv1.ConfigUpdateRestart })
	set("false")
	p := w.settle()
	w.gone(t, nil, "refused")
	if r := p.Refused(); len(r) != 1 || r[0].Field != "spec.feSpec.configMapInfo" || !strings.Contains(r[0].Message, "was true when the members joined") {
		t.Errorf("refused are %v", r)
	}
	if got := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(got, "True") {
		t.Errorf("Stalled is %q", got)
	}
	set("true")
	if p := w.settle(); len(p.Refused()) > 0 {
		t.Errorf("mended: %v", p.Findings)
	}
	w.gone(t, nil, "mended")
}

// TestDataStays edits volumes of members that exist.
func TestDataStays(t *testing.T) {
	t.Parallel()
	size := func(text string) func(s *dorisv1.BaseSpec) {
		return func(s *dorisv1.BaseSpec) {
			s.PersistentVolumes[0].PersistentVolumeClaimSpec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
		}
	}
	t.Run("a larger disk alone is named", func(t *testing.T) {
		w := settled(t, threeByThree)
		w.edit(func(s *dorisv1.DorisClusterSpec) { size("900Gi")(&s.BeSpec.BaseSpec) })
		p := w.settle()
		w.gone(t, nil, "a larger disk")
		if got := changesOf(p, "StatefulSet/doris-be"); len(got) != 1 || !strings.Contains(got[0], "volumeClaimTemplates") || !strings.Contains(got[0], "recreate hold") {
			t.Errorf("changes %v", got)
		}
		if got := condition(w.dc, meta.ConditionChangePending); !strings.HasPrefix(got, "True") {
			t.Errorf("ChangePending is %q", got)
		}
	})
	t.Run("a disk that grew on paper may be set back, and no further", func(t *testing.T) {
		w := settled(t, threeByThree)
		asked := w.dc.Spec.BeSpec.PersistentVolumes[0].PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
		w.edit(func(s *dorisv1.DorisClusterSpec) { size("900Gi")(&s.BeSpec.BaseSpec) })
		w.edit(image("2")) // the record says 900Gi from here on
		w.settle()
		w.edit(func(s *dorisv1.DorisClusterSpec) { size(asked.String())(&s.BeSpec.BaseSpec) })
		if p := w.settle(); len(p.Refused()) > 0 {
			t.Errorf("set back: %v", p.Findings)
		}
		w.edit(func(s *dorisv1.DorisClusterSpec) { size("1Mi")(&s.BeSpec.BaseSpec) })
		if p := w.settle(); len(p.Refused()) != 1 {
			t.Errorf("smaller: %v", p.Findings)
		}
	})
	in := map[string]string{"a smaller disk": "[0].persistentVolumeClaimSpec.resources.requests.storage", "another maker of claims": "[0].provisioner"}
	for name, edit := range map[string]func(*dorisv1.BaseSpec){
		"a smaller disk":          size("1Mi"),
		"another maker of claims": func(s *dorisv1.BaseSpec) { s.PersistentVolumes[0].Provisioner = dorisv1.PVCProvisionerOperator },
		"a mount path":            func(s *dorisv1.BaseSpec) { s.PersistentVolumes[0].MountPath = "/elsewhere" },
		"a name":                  func(s *dorisv1.BaseSpec) { s.PersistentVolumes[0].Name = "other" },
		"a volume taken away":     func(s *dorisv1.BaseSpec) { s.PersistentVolumes = nil },
		"a volume more": func(s *dorisv1.BaseSpec) {
			s.PersistentVolumes = append(s.PersistentVolumes, dorisv1.PersistentVolume{Name: "log", MountPath: "/log", PersistentVolumeClaimSpec: s.PersistentVolumes[0].PersistentVolumeClaimSpec})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(t, threeByThree)
			before := templates(w)
			w.edit(func(s *dorisv1.DorisClusterSpec) { edit(&s.BeSpec.BaseSpec) })
			p := w.settle()
			w.gone(t, nil, "refused")
			if len(p.Refused()) == 0 || p.Refused()[0].Field != "spec.beSpec.persistentVolumes"+in[name] {
				t.Errorf("findings %v", p.Findings)
			}
			if diff := cmp.Diff(before, templates(w)); diff != "" {
				t.Errorf("templates (-before +after):\n%s", diff)
			}
			if got := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(got, "True UnsafeChange") {
				t.Errorf("Stalled is %q", got)
			}
		})
	}
}

// TestStrangersAddToTheTemplate lets somebody add to a template what we do not
// render.
func TestStrangersAddToTheTemplate(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
		c := &s.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "ADDED", Value: "x"})
		s.Spec.Template.Spec.Containers = append(s.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar"})
	})
	p := w.settle()
	w.gone(t, nil, "added")
	if got := changesOf(p, "StatefulSet/doris-be"); len(got) != 2 {
		t.Errorf("changes %v", got)
	}
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %q\n%s", got, printPlan(p))
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(4)) })
	w.settle()
	w.gone(t, nil, "an unrelated edit")
	w.edit(image("2"))
	w.settle()
	w.gone(t, append([]string{"doris-be-3"}, backends...), "the image")
}

// TestARestartThatLosesData asks for a restart of backends on emptyDir volumes in
// the set itself, and adds a label to its template.
func TestARestartThatLosesData(t *testing.T) {
	t.Parallel()
	w := settled(t, onEmptyDir)
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
		s.Spec.Template.Labels["team"] = "shop"
	})
	p := w.settle()
	w.gone(t, nil, "a label")
	if got := changesOf(p, "StatefulSet/doris-be"); !slices.Equal(got, []string{"spec.template.metadata.labels[\"team\"] drift none refuse"}) {
		t.Errorf("changes %v", got)
	}
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
		annotateTemplate(s, restartKubectl, "2026-05-06T09:00:00Z")
	})
	p = w.settle()
	w.gone(t, nil, "a restart that loses data")
	w.approve(onlyDigest(t, p, "StatefulSet/doris-be"))
	w.settle()
	w.gone(t, backends, "accepted")
}

// TestARenumberedPortIsPutBack lets somebody give a port of a Service another
// number: an entry that is not ours beside ours.
func TestARenumberedPortIsPutBack(t *testing.T) {
	t.Parallel()
	w := settled(t, threeByThree)
	ports := func() map[string]int32 {
		out := map[string]int32{}
		list := object(w, "doris-be-internal", &corev1.Service{}).Spec.Ports
		for _, p := range list {
			out[p.Name] = p.Port
		}
		if len(out) != len(list) {
			t.Errorf("two ports of one name: %v", list)
		}
		return out
	}
	before := ports()
	stranger(w, "doris-be-internal", &corev1.Service{}, func(s *corev1.Service) { s.Spec.Ports[0].Port = 1234 })
	w.settle()
	if diff := cmp.Diff(before, ports()); diff != "" {
		t.Errorf("ports (-before +after):\n%s", diff)
	}
}
