// Package clustertest gives tests a cluster: one for each test binary, brought
// up when the first test asks for it and taken down after the last.
//
//	func TestMain(m *testing.M) { clustertest.Main(m, cluster.Options{}) }
//
//	func TestSomething(t *testing.T) {
//		c := clustertest.Shared(t)
//		namespace := clustertest.Namespace(t)
//		…
//	}
//
// With FAIRLEAD_CLUSTER_DIR set, the tests use the running cluster of that
// directory instead and leave it up. Tests share a cluster with others either
// way, so each keeps to namespaces of its own.
package clustertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead-dev/fairlead/test/cluster"
)

// DirVariable names the environment variable that points tests at a running cluster.
const DirVariable = "FAIRLEAD_CLUSTER_DIR"

// upWithin includes a first build of the Kubernetes programs.
const upWithin = 25 * time.Minute

var shared struct {
	once    sync.Once
	options *cluster.Options // nil without Main
	cluster *cluster.Cluster
	own     bool
	err     error
}

// Main runs the tests and takes the shared cluster down, if a test brought it up.
func Main(m *testing.M, opts cluster.Options) {
	shared.options = &opts
	code := m.Run()
	if shared.own && shared.cluster != nil {
		if err := shared.cluster.Down(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Shared returns the cluster of this test binary. With -short the test is skipped.
func Shared(tb testing.TB) *cluster.Cluster {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a cluster")
	}
	shared.once.Do(start)
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.cluster
}

func start() {
	if dir := os.Getenv(DirVariable); dir != "" {
		shared.cluster, shared.err = cluster.Open(dir)
		return
	}
	if shared.options == nil {
		shared.err = fmt.Errorf("no TestMain calls clustertest.Main: nobody would take the cluster down")
		return
	}
	opts := *shared.options
	opts.DieWithParent = true
	if opts.Log == nil {
		opts.Log = os.Stderr
	}
	ctx, cancel := context.WithTimeout(context.Background(), upWithin)
	defer cancel()
	shared.own = true
	shared.cluster, shared.err = cluster.Up(ctx, opts)
}

// Client returns a client of the shared cluster.
func Client(tb testing.TB) kubernetes.Interface {
	tb.Helper()
	client, err := kubernetes.NewForConfig(Shared(tb).RESTConfig())
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// Namespace makes a namespace in the shared cluster and deletes it after the test.
func Namespace(tb testing.TB) string {
	tb.Helper()
	client := Client(tb)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	made, err := client.CoreV1().Namespaces().Create(tb.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		// The test's own context has ended by now.
		err := client.CoreV1().Namespaces().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
		if err != nil {
			tb.Errorf("delete namespace %s: %v", made.Name, err)
		}
	})
	return made.Name
}
