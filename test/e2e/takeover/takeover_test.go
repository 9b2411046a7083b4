// Package takeover_test takes a cluster of the existing operator over on a real
// node, while a client asks it queries.
package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/demo"
	"github.com/fairlead-dev/fairlead/test/story"
)

// newBackend is the image that the backends get after the takeover.
const newBackend = "apache/doris:be-2.1.9"

// holds is how long nothing may happen after the takeover.
const holds = 20 * time.Second

// logged lets the story be read in the test's log.
type logged struct{ t *testing.T }

func (l logged) Write(p []byte) (int, error) {
	l.t.Log(string(p))
	return len(p), nil
}

// found is a cluster that another operator made, and who looks at it.
type found struct {
	*testing.T
	*demo.Demo
	client  client.WithWatch
	history *story.History
}

func TestTakeoverOfAClusterThatServes(t *testing.T) {
	if os.Getenv("FAIRLEAD_REAL_NODE") != "1" {
		t.Skip("needs a real node: set FAIRLEAD_REAL_NODE=1, as root on Linux")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 35*time.Minute)
	defer cancel()
	f := bringUp(ctx, t)
	f.legacy(ctx)
	asked := f.ask(ctx)
	if f.notTakenOver(ctx) == "" {
		t.Fatal("the sets are the operator's before it is there")
	}

	pods, workloads := f.pods(ctx), f.workloads(ctx)
	f.must(f.InstallOperator(ctx))
	f.await(ctx, "the cluster is taken over", f.notTakenOver)
	f.await(ctx, "the cluster is settled", f.unsettled)
	f.Sayf("taken over")
	time.Sleep(holds) // in which nothing may happen
	f.same("Pods and containers", pods, f.pods(ctx))
	f.same("templates, claim templates, replicas and revisions", workloads, f.workloads(ctx))
	if went := f.history.Went(); len(went) > 0 {
		t.Errorf("Pods went by the takeover: %v", went)
	}
	asked.report("until it was taken over, and after")

	_, err := f.Kubectl(ctx, "patch", "dcr", demo.Name, "-n", demo.Namespace, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"beSpec":{"image":%q}}}`, newBackend))
	f.must(err)
	f.Sayf("the image of the backends is %s", newBackend)
	f.await(ctx, "the backends follow their image", f.notFollowed)
	f.await(ctx, "the cluster is settled again", f.unsettled)
	f.Sayf("rolled")
	if live, err := f.AwaitBackends(ctx, 2, time.Minute); err != nil {
		t.Errorf("%v: %v", live, err)
	}
	f.same("the frontend", pods[demo.Name+"-fe-0"], f.pods(ctx)[demo.Name+"-fe-0"])
	asked.report("during the roll")
	asked.end()
	broken := f.history.End()
	f.same("the Pods that went, in order", []string{demo.Name + "-be-1", demo.Name + "-be-0"}, f.history.Went())
	f.same("promises broken", []string(nil), broken)
	f.migrates(ctx)
}

// bringUp starts a cluster whose node has the images and the definition, but no
// operator.
func bringUp(ctx context.Context, t *testing.T) *found {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	f := &found{T: t, Demo: &demo.Demo{Root: root, Images: t.TempDir(), Out: logged{t}}}
	f.Begin()
	f.must(demo.BuildImages(ctx, root, f.Images, f.Out))
	f.must(demo.BuildStandIn(ctx, root, f.Images, f.Out, "--be-tag", "docker.io/"+newBackend))
	f.Cluster, err = cluster.Up(ctx, cluster.Options{Nodes: cluster.Real, Log: f.Out, DieWithParent: true})
	f.must(err)
	t.Cleanup(func() {
		if err := f.Cluster.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	f.must(f.LoadImages(ctx))
	scheme := runtime.NewScheme()
	f.must(errors.Join(clientgoscheme.AddToScheme(scheme), dorisv1.AddToScheme(scheme)))
	f.client, err = client.NewWithWatch(f.Cluster.RESTConfig(), client.Options{Scheme: scheme})
	f.must(err)
	_, err = f.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(root, "config/crd"))
	f.must(err)
	f.must(story.AwaitKind(ctx, f.client, time.Minute))
	_, err = f.Kubectl(ctx, "create", "namespace", demo.Namespace)
	f.must(err)
	f.history, err = story.Watch(f.client, demo.Namespace)
	f.must(err)
	return f
}

func (f *found) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *found) same(what string, before, after any) {
	f.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		f.Errorf("%s (-before +after):\n%s", what, diff)
	}
}

// await waits until a condition says that nothing is missing.
func (f *found) await(ctx context.Context, what string, missing func(context.Context) string) {
	f.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		why := missing(ctx)
		if why == "" {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			f.Fatalf("it never came: %s: %s\n%s", what, why, f.Diagnosis(context.WithoutCancel(ctx), demo.Namespace))
		}
	}
}

func (f *found) sets(ctx context.Context) []appsv1.StatefulSet {
	f.Helper()
	list := &appsv1.StatefulSetList{}
	f.must(f.client.List(ctx, list, client.InNamespace(demo.Namespace)))
	return list.Items
}

func (f *found) listPods(ctx context.Context) []corev1.Pod {
	f.Helper()
	list := &corev1.PodList{}
	f.must(f.client.List(ctx, list, client.InNamespace(demo.Namespace)))
	return list.Items
}

// notTakenOver says which set is not under the operator yet.
func (f *found) notTakenOver(ctx context.Context) string {
	for _, set := range f.sets(ctx) {
		if set.Annotations[meta.AnnotationRevision] != "0" || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
			return fmt.Sprintf("%s has revision %q and the strategy %s", set.Name, set.Annotations[meta.AnnotationRevision], set.Spec.UpdateStrategy.Type)
		}
	}
	return ""
}

// unsettled says what the operator has still to do.
func (f *found) unsettled(ctx context.Context) string {
	dc := &dorisv1.DorisCluster{}
	f.must(f.client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: demo.Name}, dc))
	return story.Unsettled(dc)
}

// notFollowed says which backend does not serve with the new image.
func (f *found) notFollowed(ctx context.Context) string {
	for _, p := range f.listPods(ctx) {
		if p.Labels[dorisv1.LabelComponent] == string(dorisv1.ComponentBE) && (p.Spec.Containers[0].Image != newBackend || !story.PodReady(&p)) {
			return p.Name + " does not"
		}
	}
	return ""
}

// pods are the identities of Pods and containers.
func (f *found) pods(ctx context.Context) map[string]string {
	f.Helper()
	out := map[string]string{}
	for _, p := range f.listPods(ctx) {
		out[p.Name] = string(p.UID)
		for _, c := range p.Status.ContainerStatuses {
			out[p.Name] += fmt.Sprintf(" %s restarted %d times", c.ContainerID, c.RestartCount)
		}
	}
	return out
}
