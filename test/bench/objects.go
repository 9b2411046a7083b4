package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

var (
	crds          = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	dorisClusters = schema.GroupVersionResource{Group: "doris.selectdb.com", Version: "v1", Resource: "dorisclusters"}
)

// clusterManifest is the smallest cluster that people write.
const clusterManifest = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata:
  name: doris
spec:
  feSpec:
    replicas: 1
    image: apache/doris:fe-2.1.8
  beSpec:
    replicas: 1
    image: apache/doris:be-2.1.8
`

// applyCRDs installs every definition of config/crd and waits until they serve.
func applyCRDs(ctx context.Context, client dynamic.Interface, root string) error {
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("no custom resource definitions in config/crd")
	}
	for _, file := range files {
		definition, err := readObject(file)
		if err != nil {
			return err
		}
		if _, err := client.Resource(crds).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s: %w", definition.GetName(), err)
		}
		err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			live, err := client.Resource(crds).Get(ctx, definition.GetName(), metav1.GetOptions{})
			return err == nil && condition(live, "Established") == "True", err
		})
		if err != nil {
			return fmt.Errorf("%s is not established: %w", definition.GetName(), err)
		}
	}
	return nil
}

func readObject(file string) (*unstructured.Unstructured, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode(f)
}

func decode(r io.Reader) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := yaml.NewYAMLOrJSONDecoder(r, 4096).Decode(obj); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return obj, nil
}

// condition returns the status of a condition, or nothing.
func condition(obj *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			status, _ := m["status"].(string)
			return status
		}
	}
	return ""
}

// available reports whether a cluster serves, in the old words and in the new.
func available(cluster *unstructured.Unstructured) bool {
	for _, component := range []string{"feStatus", "beStatus"} {
		phase, _, _ := unstructured.NestedString(cluster.Object, "status", component, "componentCondition", "phase")
		if phase != "available" {
			return false
		}
	}
	return condition(cluster, "Available") == "True" && condition(cluster, "Ready") == "True"
}

// place is where one cluster goes.
type place struct{ namespace, name string }

// places spreads n clusters over namespaces; over one each if there are none.
func places(n, namespaces int) []place {
	if namespaces <= 0 || namespaces > n {
		namespaces = n
	}
	all := make([]place, n)
	for i := range all {
		all[i] = place{fmt.Sprintf("bench-%d", i%namespaces), fmt.Sprintf("doris-%d", i)}
	}
	return all
}

// createNamespaces makes the namespaces and waits until Pods can be made in them.
func createNamespaces(ctx context.Context, client kubernetes.Interface, all []place) error {
	names := map[string]bool{}
	for _, p := range all {
		names[p.namespace] = true
	}
	for name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace: %w", err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		accounts, err := client.CoreV1().ServiceAccounts("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		missing := len(names)
		for _, a := range accounts.Items {
			if a.Name == "default" && names[a.Namespace] {
				missing--
			}
		}
		return missing == 0, nil
	})
}

// inParallel calls do for 0 to n-1, several at once.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	const at = 16
	var group sync.WaitGroup
	errs := make([]error, at)
	for w := range at {
		group.Go(func() {
			for i := w; i < n && errs[w] == nil && ctx.Err() == nil; i += at {
				errs[w] = do(ctx, i)
			}
		})
	}
	group.Wait()
	return errors.Join(errors.Join(errs...), ctx.Err())
}

// createForeign makes ConfigMaps and Secrets that concern no operator.
func createForeign(ctx context.Context, client kubernetes.Interface, count, size int) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	text := strings.Repeat("x", size)
	return inParallel(ctx, count, func(ctx context.Context, i int) error {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", i), Labels: map[string]string{"app": "other"}}
		configMap := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"content": text}}
		if _, err := client.CoreV1().ConfigMaps("foreign").Create(ctx, configMap, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create config map: %w", err)
		}
		secret := &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"content": text}}
		if _, err := client.CoreV1().Secrets("foreign").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create secret: %w", err)
		}
		return nil
	})
}
