package doris

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/fairlead-dev/fairlead/internal/diff"
)

const compatDir = "../../../../shared/compat/doris"

// TestRevisionZeroIsWhatLives renders, at revision 0, the public manifests of the
// existing operator, and compares with what that operator had made of them on a
// real API server. A difference would restart Pods when a cluster is taken over.
func TestRevisionZeroIsWhatLives(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(compatDir, "live", "doriscluster-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the recorded clusters are not here")
	}
	sets, services := 0, 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			live := readLive(t, file)
			dc, in := readCase(t, filepath.Join(compatDir, "examples", filepath.Base(file)))
			in.Revision = 0
			maps.Copy(in.ConfigMaps, live.configMaps)
			for _, name := range References(dc).ConfigMaps {
				if in.ConfigMaps[name] == nil {
					in.ConfigMaps[name] = exampleConfig(t, name)
				}
			}
			objects, _ := Desired(dc, in)
			for _, c := range objects.Components {
				sets++
				compareSet(t, live, c.StatefulSet)
				for _, s := range c.Services {
					services++
					compareService(t, live, s)
				}
			}
			compareAutoscaler(t, &live, objects.Autoscaler)
			for name := range live.sets {
				t.Errorf("StatefulSet %s lives and is not rendered", name)
			}
			if live.autoscaler != nil {
				t.Errorf("autoscaler %s lives and is not rendered", live.autoscaler.Name)
			}
			for name := range live.services {
				t.Errorf("Service %s lives and is not rendered", name)
			}
		})
	}
	t.Logf("%d clusters, %d StatefulSets, %d Services compared", len(files), sets, services)
}

// liveObjects are recorded objects by name. What was compared is taken out.
type liveObjects struct {
	sets       map[string]*appsv1.StatefulSet
	services   map[string]*corev1.Service
	configMaps map[string]*corev1.ConfigMap
	autoscaler *autoscalingv2.HorizontalPodAutoscaler
}

func readLive(t *testing.T, file string) liveObjects {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	live := liveObjects{sets: map[string]*appsv1.StatefulSet{}, services: map[string]*corev1.Service{}, configMaps: map[string]*corev1.ConfigMap{}}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var head struct{ Kind string }
		decode(t, doc, &head)
		switch head.Kind {
		case "StatefulSet":
			set := &appsv1.StatefulSet{}
			decode(t, doc, set)
			live.sets[set.Name] = set
		case "Service":
			service := &corev1.Service{}
			decode(t, doc, service)
			live.services[service.Name] = service
		case "ConfigMap":
			cm := &corev1.ConfigMap{}
			decode(t, doc, cm)
			live.configMaps[cm.Name] = cm
		case kindAutoscaler:
			live.autoscaler = &autoscalingv2.HorizontalPodAutoscaler{}
			decode(t, doc, live.autoscaler)
		}
	}
	return live
}

// exampleConfig returns the ConfigMap that an example asks people to make of the
// configuration file beside it.
func exampleConfig(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	key, _, _ := strings.Cut(name, "-")
	text, err := os.ReadFile(filepath.Join(compatDir, "examples", key+".conf"))
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{Data: map[string]string{key + ".conf": string(text)}}
}

func compareSet(t *testing.T, live liveObjects, set *appsv1.StatefulSet) {
	t.Helper()
	was := live.sets[set.Name]
	if was == nil {
		t.Errorf("StatefulSet %s is rendered and does not live", set.Name)
		return
	}
	delete(live.sets, set.Name)
	if d := cmp.Diff(filledTemplate(t, was), filledTemplate(t, set)); d != "" {
		t.Errorf("%s: spec.template (-live +revision 0):\n%s", set.Name, d)
	}
	extra, err := diff.New(clientgoscheme.Scheme).ExtraFields(templateOf(t, set), templateOf(t, was))
	if err != nil || len(extra) > 0 {
		t.Errorf("%s: the live template has %v besides, %v", set.Name, extra, err)
	}
	if d := cmp.Diff(claimTemplates(was), claimTemplates(set)); d != "" {
		t.Errorf("%s: spec.volumeClaimTemplates (-live +revision 0):\n%s", set.Name, d)
	}
	frame := func(s *appsv1.StatefulSet) []any {
		return []any{s.Labels, s.Spec.Selector, s.Spec.ServiceName, s.Spec.PodManagementPolicy, s.Spec.RevisionHistoryLimit}
	}
	if d := cmp.Diff(frame(was), frame(set)); d != "" {
		t.Errorf("%s: around the template (-live +revision 0):\n%s", set.Name, d)
	}
}

// compareAutoscaler compares all but the target, which is the resource now.
func compareAutoscaler(t *testing.T, live *liveObjects, rendered *autoscalingv2.HorizontalPodAutoscaler) {
	t.Helper()
	if rendered == nil || live.autoscaler == nil {
		if (rendered == nil) != (live.autoscaler == nil) {
			t.Errorf("autoscaler: %v lives, %v is rendered", live.autoscaler, rendered)
		}
		return
	}
	said := func(a *autoscalingv2.HorizontalPodAutoscaler) []any {
		return []any{a.Name, a.Labels, a.Spec.MinReplicas, a.Spec.MaxReplicas, a.Spec.Metrics, a.Spec.Behavior}
	}
	if d := cmp.Diff(said(live.autoscaler), said(rendered)); d != "" {
		t.Errorf("autoscaler (-live +rendered):\n%s", d)
	}
	if !scalesSet(live.autoscaler) || scalesSet(rendered) {
		t.Errorf("the target is %v, and will be %v", live.autoscaler.Spec.ScaleTargetRef, rendered.Spec.ScaleTargetRef)
	}
	live.autoscaler = nil
}

func filledTemplate(t *testing.T, set *appsv1.StatefulSet) map[string]any {
	t.Helper()
	template := templateOf(t, set)
	diff.FillPodTemplate(template)
	return template
}

func templateOf(t *testing.T, set *appsv1.StatefulSet) map[string]any {
	t.Helper()
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// claimTemplates returns claim templates with the defaults of the API server.
func claimTemplates(set *appsv1.StatefulSet) []corev1.PersistentVolumeClaim {
	var list []corev1.PersistentVolumeClaim
	for i := range set.Spec.VolumeClaimTemplates {
		c := set.Spec.VolumeClaimTemplates[i].DeepCopy()
		if c.Spec.VolumeMode == nil {
			c.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
		}
		c.Status = corev1.PersistentVolumeClaimStatus{}
		list = append(list, *c)
	}
	return list
}

func compareService(t *testing.T, live liveObjects, service *corev1.Service) {
	t.Helper()
	was := live.services[service.Name]
	if was == nil {
		t.Errorf("Service %s is rendered and does not live", service.Name)
		return
	}
	delete(live.services, service.Name)
	if d := cmp.Diff(ownService(was), ownService(service)); d != "" {
		t.Errorf("Service %s (-live +revision 0):\n%s", service.Name, d)
	}
}

// ownService returns what a renderer says of a Service: without what the API
// server assigns and defaults.
func ownService(s *corev1.Service) map[string]any {
	ports := []string{}
	for _, p := range s.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%s %s %d %s", p.Name, p.Protocol, p.Port, p.TargetPort.String()))
	}
	affinity := s.Spec.SessionAffinity
	if affinity == "" {
		affinity = corev1.ServiceAffinityNone
	}
	return map[string]any{
		"labels": s.Labels, "selector": s.Spec.Selector, "type": s.Spec.Type, "ports": ports,
		"headless": s.Spec.ClusterIP == corev1.ClusterIPNone, "sessionAffinity": affinity,
		"publishNotReadyAddresses": s.Spec.PublishNotReadyAddresses, "loadBalancerIP": s.Spec.LoadBalancerIP,
	}
}
