package doris

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

func TestComponentOfAPod(t *testing.T) {
	t.Parallel()
	dc := &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
	owned := func(kind, name string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(controller)}}
	}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   dorisv1.ComponentType
	}{
		"Pod of the frontends' set is a frontend":      {owned("StatefulSet", "d-fe", true), dorisv1.ComponentFE},
		"Pod of the backends' set is a backend":        {owned("StatefulSet", "d-be", true), dorisv1.ComponentBE},
		"bare Pod with our labels is nobody":           {nil, ""},
		"Pod of another set is nobody":                 {owned("StatefulSet", "d-bee", true), ""},
		"Pod of another kind of owner is nobody":       {owned("Job", "d-be", true), ""},
		"Pod that is only held by the set is nobody's": {owned("StatefulSet", "d-be", false), ""},
	} {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{dorisv1.LabelCluster: "d", dorisv1.LabelComponent: "be"}
			got, ours := componentOf(dc, World{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "d-be-0", Labels: labels, OwnerReferences: tc.owners}})
			if got != tc.want || ours != (tc.want != "") {
				t.Errorf("component %q, ours %t; want %q", got, ours, tc.want)
			}
		})
	}
}

// TestNamesThatNoObjectCanHaveAreRefusedAndNotAskedFor holds that a cluster whose
// spec names nonsense is told so, which it was not while observing it failed.
func TestNamesThatNoObjectCanHaveAreRefusedAndNotAskedFor(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a/b", "100%", "..", "Upper"} {
		w := newWorld(t, smallCluster)
		w.edit(func(s *dorisv1.DorisClusterSpec) {
			s.AuthSecret = name
			s.FeSpec.ConfigMapInfo = dorisv1.ConfigMapInfo{ConfigMapName: name, ResolveKey: "fe.conf"}
			s.BeSpec.Secrets = []dorisv1.Secret{{SecretName: name, MountPath: "/etc/s"}}
		})
		refs := References(w.dc)
		if asked := slices.Concat(refs.ConfigMaps, refs.Secrets, refs.Claims); slices.Contains(asked, name) {
			t.Errorf("%q would be asked for", name)
		}
		p := w.reconcile()
		for _, field := range []string{"spec.authSecret", "spec.feSpec.configMapInfo.configMapName", "spec.beSpec.secrets[0]"} {
			if !slices.ContainsFunc(p.Refused(), func(f plan.Finding) bool { return f.Field == field }) {
				t.Errorf("%q in %s is not refused: %v", name, field, p.Refused())
			}
		}
	}
}
