package stories

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
)

// storageOf is the annotation of a set that says where settings are kept.
const storageOf = "doris.apache.org/runtime-config-storage"

// TestSettingsAreKept tells of a new cluster that asks for settings to be kept: the API
// server takes what is rendered for it, there is no way back, and a set that is
// deleted keeps them in the same place.
func TestSettingsAreKept(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(strings.Replace(three, "spec:\n", "spec:\n  runtimeConfigPersistence: {enabled: true}\n", 1))
	s.settled("doris")
	if got := s.doris("doris").Annotations[dorisv1.AnnotationRuntimeConfigPolicy]; got != "enabled" {
		t.Errorf("the policy is %q", got)
	}
	before := backends(s)
	if !strings.Contains(before.Annotations[storageOf], `"volume"`) {
		t.Fatalf("the set says %q", before.Annotations[storageOf])
	}
	for _, pod := range s.pods("be") {
		if mounts := pod.Spec.Containers[0].VolumeMounts; !hasKept(mounts) {
			t.Errorf("%s mounts %v", pod.Name, mounts)
		}
	}
	s.quiet(2 * time.Second)
	s.saysPlugin(exit.OK, []string{"be ", "custom_config_dir", "operator", "keeps settings on volume", "not known"}, "explain", "dcr/doris")
	s.changesAreCounted()

	dc := s.doris("doris")
	dc.Spec.RuntimeConfigPersistence.Enabled = new(false)
	err := s.client.Update(t.Context(), dc)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "kept already") {
		t.Errorf("turning it off: %v", err)
	}

	s.history.Deleting() // Pods go with their set
	set := backends(s)
	if err := s.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	s.eventually("the set is made again", func() string {
		now := &appsv1.StatefulSet{}
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(set), now); err != nil {
			return err.Error()
		}
		if now.UID == set.UID {
			return "it is the old one"
		}
		return ""
	})
	s.settled("doris")
	after := backends(s)
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		t.Errorf("the template of the set that was made again (-before +after):\n%s", diff)
	}
	if before.Annotations[storageOf] != after.Annotations[storageOf] {
		t.Errorf("it says %q, and said %q", after.Annotations[storageOf], before.Annotations[storageOf])
	}
}

// changesAreCounted puts what the operator notes of changed settings where it would, for
// there are no nodes here that could be asked: the status counts them, and explain says
// where they are.
func (s *scene) changesAreCounted() {
	s.Helper()
	dc := s.doris("doris")
	observed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: "doris-observed", Labels: map[string]string{dorisv1.LabelOwner: "doris"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(dc, dorisv1.GroupVersionKind())},
	}, Data: map[string]string{"be": `{"image":"i","nodes":{"doris-be-1":{"start":"a","changed":{"streaming_load_max_mb":"2026-05-06T12:00:00Z"}}}}`}}
	if err := s.client.Create(s.Context(), observed); err != nil {
		s.Fatal(err)
	}
	s.eventually("the status counts it", func() string {
		if is := s.doris("doris").Status.RuntimeConfig; is == nil || is.ChangedSettings != 1 || is.ChangedNodes != 1 {
			return fmt.Sprintf("it says %+v", is)
		}
		return ""
	})
	s.saysPlugin(exit.OK, []string{"Changed at run time: settings 1, nodes 1 ("}, "status", "dcr", "doris")
	s.saysPlugin(exit.OK, []string{"run-time", "doris-be-1", "2026-05-06T12:00:00Z"}, "explain", "dcr", "doris", "streaming_load_max_mb")
	if out := s.saysPlugin(exit.OK, []string{"be", "custom_config_dir"}, "explain", "dcr", "doris", "custom_config_dir"); strings.Contains(out, "streaming_load_max_mb") {
		s.Errorf("explain says more than was asked:\n%s", out)
	}
	s.saysPlugin(exit.Failed, []string{"one KEY"}, "explain", "dcr", "doris", "a", "b")
}

func hasKept(mounts []corev1.VolumeMount) bool {
	for _, m := range mounts {
		if strings.HasSuffix(m.SubPathExpr, ".doris-runtime-config/$(POD_NAME)") {
			return true
		}
	}
	return false
}

// TestSettingsOfAClusterThatRuns tells of a cluster that runs without keeping settings:
// asking for it is refused, and nothing moves. A new one that says nothing keeps those of
// the components that have a volume, and an event tells of the others.
func TestSettingsOfAClusterThatRuns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(strings.Replace(three, "{name: doris}", `{name: doris, annotations: {doris.apache.org/runtime-config-policy: legacy}}`, 1))
	s.settled("doris")
	before, image := s.identities(), backends(s).Spec.Template.Spec.Containers[0].Image
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.RuntimeConfigPersistence = &dorisv1.RuntimeConfigPersistence{Enabled: new(true)}
		dc.Spec.BeSpec.Image = "apache/doris:be-3.0.6"
	})
	s.says("doris", meta.ConditionStalled, "True", "RuntimeConfigMigrationNeeded", "have to be copied first")
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.RuntimeConfigPersistence = nil
		dc.Spec.BeSpec.Image = image
	})
	s.settled("doris")
	if diff := cmp.Diff(before, s.identities()); diff != "" {
		t.Errorf("Pods (-before +after):\n%s", diff)
	}

	s.create(withoutDisks)
	s.says("bare", "RuntimeConfigurationKept", "False", unavailable, "running Pods of be")
	s.eventually("an event tells of it", func() string {
		events := &corev1.EventList{}
		for _, o := range s.list(events) {
			if e, is := o.(*corev1.Event); is && e.Reason == unavailable && e.InvolvedObject.Name == "bare" {
				return ""
			}
		}
		return "there is none"
	})
	dc := s.doris("bare")
	if got := dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy]; got != "automatic" {
		t.Errorf("the policy is %q", got)
	}
	if diff := cmp.Diff(&dorisv1.RuntimeConfigStatus{Policy: "automatic", Kept: []dorisv1.ComponentType{"fe"}, NotKept: []dorisv1.ComponentType{"be"}}, dc.Status.RuntimeConfig); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

const unavailable = "RuntimeConfigStorageUnavailable"

// withoutDisks is a cluster whose backends have no volume.
const withoutDisks = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: bare}
spec:
  feSpec:
    replicas: 1
    image: "apache/doris:fe-2.1.8"
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  beSpec: {replicas: 1, image: "apache/doris:be-2.1.8"}
`

// TestWhereNewClustersKeepSettings tells of new clusters that have a claim for their logs
// alone, for metadata alone, for data alone, and none: what has one keeps its settings
// there, in each Pod, and what has none runs as ever and says that it does not.
func TestWhereNewClustersKeepSettings(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	const (
		fe, be = "/opt/apache-doris/fe", "/opt/apache-doris/be"
		none   = ""
	)
	clusters := map[string]struct {
		feDir, beDir string // where a claim is
		kept         []dorisv1.ComponentType
		notKept      []dorisv1.ComponentType
	}{
		"logs": {feDir: fe + "/log", beDir: be + "/log", kept: []dorisv1.ComponentType{"be", "fe"}},
		"meta": {feDir: fe + "/doris-meta", beDir: none, kept: []dorisv1.ComponentType{"fe"}, notKept: []dorisv1.ComponentType{"be"}},
		"data": {feDir: none, beDir: be + "/storage", kept: []dorisv1.ComponentType{"be"}, notKept: []dorisv1.ComponentType{"fe"}},
		"none": {feDir: none, beDir: none, notKept: []dorisv1.ComponentType{"be", "fe"}},
	}
	volumes := func(dir string) string {
		if dir == none {
			return ""
		}
		return fmt.Sprintf(", persistentVolumes: [{name: kept, mountPath: %s, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}]", dir)
	}
	for name, c := range clusters {
		s.create(fmt.Sprintf(`
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: %s}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8"%s}
  beSpec: {replicas: 2, image: "apache/doris:be-2.1.8"%s}
`, name, volumes(c.feDir), volumes(c.beDir)))
	}
	for name, c := range clusters {
		dc := s.settled(name)
		want := &dorisv1.RuntimeConfigStatus{Policy: "automatic", Kept: c.kept, NotKept: c.notKept}
		s.eventually("the status of "+name+" tells", func() string {
			return cmp.Diff(want, s.doris(name).Status.RuntimeConfig)
		})
		for _, pod := range s.pods("") {
			if pod.Labels[dorisv1.LabelCluster] != name {
				continue
			}
			kept := slices.Contains(c.kept, dorisv1.ComponentType(pod.Labels[dorisv1.LabelComponent]))
			if got := hasKept(pod.Spec.Containers[0].VolumeMounts); got != kept {
				t.Errorf("%s of %s keeps its settings: %t, want %t", pod.Name, name, got, kept)
			}
		}
		if len(c.notKept) > 0 {
			s.says(dc.Name, "RuntimeConfigurationKept", "False", unavailable)
		}
	}
}
