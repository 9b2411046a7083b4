package stories

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/story"
)

// TestSamplesBecomeAvailable creates every manifest of the shapes that people
// write, all at once, and waits until each serves.
func TestSamplesBecomeAvailable(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	own, err := filepath.Glob("testdata/samples/*.yaml")
	if err != nil || len(own) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	known, err := filepath.Glob(root + "../shared/compat/doris/examples/doriscluster-sample*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{} // of clusters, by file
	for i, file := range append(own, known...) {
		for _, u := range story.Documents(readFile(t, file)) {
			u.SetNamespace(s.namespace)
			if u.GetKind() == dorisv1.Kind {
				u.SetName(fmt.Sprintf("s%d", i))
				names[u.GetName()] = file
			}
			if err := client.IgnoreAlreadyExists(s.client.Create(t.Context(), &u)); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		s.bringConfigMaps(file)
	}
	for i := range len(own) + len(known) {
		name := fmt.Sprintf("s%d", i)
		dc := s.settled(name)
		checkSupport(t, names[name], dc)
	}
}

// bringConfigMaps makes the ConfigMaps that the known manifests name and that
// lie beside them as files.
func (s *scene) bringConfigMaps(file string) {
	s.Helper()
	if strings.HasPrefix(file, "testdata") || !strings.Contains(file, "configmap") && !strings.Contains(file, "-cn") {
		return
	}
	for name, key := range map[string]string{"fe-configmap": "fe.conf", "be-configmap": "be.conf", "cn-configmap": "be.conf"} {
		text := readFile(s.T, filepath.Dir(file), key)
		if name == "cn-configmap" { // as the manifest asks people to write it
			text += "\nbe_node_role = computation\n"
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: map[string]string{key: text}}
		if err := client.IgnoreAlreadyExists(s.client.Create(s.Context(), cm)); err != nil {
			s.Fatal(err)
		}
	}
}

// checkSupport holds that nothing is named as not offered.
func checkSupport(t *testing.T, file string, dc *dorisv1.DorisCluster) {
	t.Helper()
	if got := story.ConditionText(dc, meta.ConditionFullySupported); !strings.HasPrefix(got, "no condition") {
		t.Errorf("%s: something is not supported: %s", file, got)
	}
}
