package stories

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/counts"
	"github.com/fairlead-dev/fairlead/test/simnode"
	"github.com/fairlead-dev/fairlead/test/story"
)

const root = "../../"

// operatorAgent starts the user agent of the operator.
const operatorAgent = "fairlead/"

// patience is how long a story waits for what should take a second or two.
const patience = 3 * time.Minute

// stage is what all stories share.
var stage struct {
	once   sync.Once
	client client.WithWatch
	nodes  *simnode.Simulator
	err    error
}

// scene is one story's namespace.
type scene struct {
	*testing.T
	cluster   *cluster.Cluster
	client    client.WithWatch
	nodes     *simnode.Simulator
	namespace string
	history   *story.History
	op        *process
	// refusals says that the operator will ask for what it may not have.
	refusals bool
}

func newScene(t *testing.T) *scene {
	t.Helper()
	c := clustertest.Shared(t)
	stage.once.Do(func() { stage.err = setStage(c) })
	if stage.err != nil {
		t.Fatal(stage.err)
	}
	s := &scene{T: t, cluster: c, client: stage.client, nodes: stage.nodes, namespace: clustertest.Namespace(t)}
	s.watchHistory()
	mark := s.mark()
	s.Cleanup(func() { s.usesItsRights(mark) })
	return s
}

// since skips a story of what only newer versions of Kubernetes do.
func (s *scene) since(minor int, what string) {
	s.Helper()
	version, err := discovery.NewDiscoveryClientForConfigOrDie(s.cluster.RESTConfig()).ServerVersion()
	if err != nil {
		s.Fatal(err)
	}
	if has, err := strconv.Atoi(version.Minor); err != nil || has < minor {
		s.Skipf("Kubernetes %s has no %s: it came with 1.%d", version.GitVersion, what, minor)
	}
}

// watchHistory holds what happens in the namespace against the promises that no
// story may break.
func (s *scene) watchHistory() {
	s.Helper()
	var err error
	if s.history, err = story.Watch(s.client, s.namespace); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		for _, broken := range s.history.End() {
			s.Errorf("promise broken: %s", broken)
		}
	})
}

func setStage(c *cluster.Cluster) error {
	ctrl.SetLogger(logr.Discard())
	scheme, err := story.Scheme()
	if err != nil {
		return err
	}
	if stage.client, err = client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	// All that is installed, but for the operator itself.
	if err := install(stage.client, func(kind string) bool { return kind != "Deployment" }); err != nil {
		return err
	}
	stage.nodes, err = simnode.Start(context.Background(), c.RESTConfig(), simnode.Options{
		Nodes: 6, Start: simnode.Fixed(200 * time.Millisecond), Ready: simnode.Fixed(100 * time.Millisecond),
		Backoff: simnode.Backoff{First: 500 * time.Millisecond, Max: time.Second},
	})
	if err != nil {
		return err
	}
	return awaitKind(stage.client)
}

// install applies the objects of the install manifest that are picked.
func install(c client.Client, pick func(kind string) bool) error {
	return story.Install(context.Background(), c, root+"config/install/fairlead.yaml", pick)
}

func awaitKind(c client.Client) error { return story.AwaitKind(context.Background(), c, patience) }

// small is the smallest cluster that people write.
const small = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8"}
  beSpec: {replicas: 1, image: "apache/doris:be-2.1.8"}
`

// three has three members of each, and claims.
const three = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec:
    replicas: 3
    image: "apache/doris:fe-2.1.8"
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 3
    image: "apache/doris:be-2.1.8"
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
`

// create makes the objects of a manifest in the namespace of the story.
func (s *scene) create(manifest string) {
	s.Helper()
	for _, u := range story.Documents(manifest) {
		u.SetNamespace(s.namespace)
		if err := s.client.Create(s.Context(), &u); err != nil {
			s.Fatalf("create %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

func (s *scene) get(name string, into client.Object) {
	s.Helper()
	if err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, into); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) doris(name string) *dorisv1.DorisCluster {
	s.Helper()
	dc := &dorisv1.DorisCluster{}
	s.get(name, dc)
	return dc
}

// edit changes the spec of a cluster as a person would.
func (s *scene) edit(name string, change func(*dorisv1.DorisCluster)) {
	s.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		dc := s.doris(name)
		change(dc)
		return s.client.Update(s.Context(), dc, client.FieldOwner("a-person"))
	})
	if err != nil {
		s.Fatal(err)
	}
}

// change changes an object of the operator as a stranger would.
func change[T client.Object](s *scene, name string, obj T, do func(T)) {
	s.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s.get(name, obj)
		do(obj)
		return s.client.Update(s.Context(), obj, client.FieldOwner("a-stranger"))
	})
	if err != nil {
		s.Fatal(err)
	}
}

// eventually waits until check returns nothing; it returns what is missing.
func (s *scene) eventually(what string, check func() string) {
	s.Helper()
	deadline := time.Now().Add(patience)
	for {
		missing := check()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("waited %s for: %s; but %s\n%s", patience, what, missing, s.describe())
		}
		time.Sleep(100 * time.Millisecond) // the pace of polling
	}
}

// stays holds that check goes on returning nothing for a while.
func (s *scene) stays(what string, d time.Duration, check func() string) {
	s.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if problem := check(); problem != "" {
			s.Fatalf("%s did not stay: %s\n%s", what, problem, s.describe())
		}
	}
}

// describe says how the clusters of the story are, for a failing test.
func (s *scene) describe() string {
	list := &dorisv1.DorisClusterList{}
	if err := s.client.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range list.Items {
		text, _ := yaml.Marshal(list.Items[i].Status)
		fmt.Fprintf(&b, "status of %s (generation %d):\n%s", list.Items[i].Name, list.Items[i].Generation, text)
	}
	for _, p := range s.pods("") {
		fmt.Fprintf(&b, "Pod %s: phase %s ready %v deleted %v revision %s\n", p.Name, p.Status.Phase, story.PodReady(&p), p.DeletionTimestamp, p.Labels[appsv1.ControllerRevisionHashLabelKey])
	}
	return b.String()
}

// settled waits until the newest spec of a cluster is carried out.
func (s *scene) settled(name string) *dorisv1.DorisCluster {
	s.Helper()
	var dc *dorisv1.DorisCluster
	s.eventually(name+" is settled", func() string {
		dc = s.doris(name)
		return story.Unsettled(dc)
	})
	return dc
}

// says waits until a condition has the status and holds the text.
func (s *scene) says(name, kind string, status metav1.ConditionStatus, texts ...string) {
	s.Helper()
	s.eventually(fmt.Sprintf("condition %s=%s with %q", kind, status, texts), func() string {
		dc := s.doris(name)
		c := apimeta.FindStatusCondition(dc.Status.Conditions, kind)
		if c == nil || c.Status != status {
			return "it is " + story.ConditionText(dc, kind)
		}
		for _, text := range texts {
			if !strings.Contains(c.Reason+" "+c.Message, text) {
				return "it is " + story.ConditionText(dc, kind)
			}
		}
		return ""
	})
}

// pods lists the Pods of a component (of all, if it is empty) by name.
func (s *scene) pods(component string) []corev1.Pod {
	s.Helper()
	list := &corev1.PodList{}
	opts := []client.ListOption{client.InNamespace(s.namespace)}
	if component != "" {
		opts = append(opts, client.MatchingLabels{dorisv1.LabelComponent: component})
	}
	if err := s.client.List(s.Context(), list, opts...); err != nil {
		s.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// identities are the uids of all Pods by name.
func (s *scene) identities() map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, p := range s.pods("") {
		out[p.Name] = string(p.UID)
	}
	return out
}

// requests are those of the operator.
func (s *scene) requests() counts.Client {
	return counts.Client{Log: s.cluster.Audit(), Agent: operatorAgent}
}

// quiet waits until the operator has made no request for a while: in the
// namespace of the story, since others may be told at the same time.
func (s *scene) quiet(d time.Duration) {
	s.Helper()
	last, mark := time.Now(), s.mark()
	s.eventually("the operator is quiet", func() string {
		next := s.mark()
		tally, err := s.requests().Since(mark, s.namespace)
		if err != nil {
			return err.Error()
		}
		if tally.Restless() > 0 {
			last, mark = time.Now(), next
		}
		if time.Since(last) < d {
			return "it still asks: " + tally.Summary()
		}
		return ""
	})
}

func (s *scene) mark() audit.Mark {
	s.Helper()
	mark, err := s.cluster.Audit().Mark()
	if err != nil {
		s.Fatal(err)
	}
	return mark
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func namesOf(list client.ObjectList) []string {
	items, err := apimeta.ExtractList(list)
	if err != nil {
		panic(err)
	}
	var out []string
	for _, it := range items {
		out = append(out, it.(client.Object).GetName())
	}
	return out
}

// ownKinds are the kinds that clusters are made of.
func ownKinds() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"StatefulSet": &appsv1.StatefulSetList{}, "Service": &corev1.ServiceList{},
		"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{},
	}
}

func (s *scene) list(list client.ObjectList) []client.Object {
	s.Helper()
	if err := s.client.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	items, err := apimeta.ExtractList(list)
	if err != nil {
		s.Fatal(err)
	}
	var out []client.Object
	for _, it := range items {
		out = append(out, it.(client.Object))
	}
	return out
}
