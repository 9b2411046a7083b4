package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/cluster/provisioner"
)

// provision runs a provisioner against the shared cluster for the time of the test.
func provision(t *testing.T, client kubernetes.Interface, nodeName string) (dir string) {
	t.Helper()
	_, err := client.StorageV1().StorageClasses().Create(t.Context(), provisioner.Class(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	p := &provisioner.Provisioner{Client: client, Dir: t.TempDir(), Node: nodeName, Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the provisioner ended with %v", err)
		}
	})
	return p.Dir
}

func claim(nodeName string) *corev1.PersistentVolumeClaim {
	class := provisioner.ClassName
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	if nodeName != "" { // as the scheduler writes it
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": nodeName}
	}
	c.Spec.StorageClassName = &class
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return c
}

func TestProvisionerFollowsAClaimsLife(t *testing.T) {
	client, namespace := clustertest.Client(t), clustertest.Namespace(t)
	nodeName := "node-of-" + namespace
	dir := provision(t, client, nodeName)
	claims := client.CoreV1().PersistentVolumeClaims(namespace)
	made, err := claims.Create(t.Context(), claim(nodeName), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var bound *corev1.PersistentVolumeClaim
	eventually(t, 20*time.Second, func() (bool, string) {
		bound, err = claims.Get(t.Context(), "data", metav1.GetOptions{})
		return err == nil && bound.Status.Phase == corev1.ClaimBound, "the claim is not bound"
	})
	path := filepath.Join(dir, namespace+"_data_"+string(made.UID))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Fatalf("directory of the volume: %v, %v; want one that any user can write to", info, err)
	}

	bound.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
	if _, err := claims.Update(t.Context(), bound, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() (bool, string) {
		grown, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
		return err == nil && grown.Status.Capacity.Storage().String() == "3Gi", "the claim has not grown"
	})

	if err := claims.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() (bool, string) {
		_, statErr := os.Stat(path)
		_, getErr := client.CoreV1().PersistentVolumes().Get(t.Context(), bound.Spec.VolumeName, metav1.GetOptions{})
		return errors.Is(statErr, os.ErrNotExist) && apierrors.IsNotFound(getErr), "the volume or its data are still there"
	})
}

func TestProvisionerLeavesOthersClaimsAlone(t *testing.T) {
	for _, tc := range []struct{ name, selected string }{
		{name: "claim that no Pod uses yet"},
		{name: "claim of another node", selected: "elsewhere"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, namespace := clustertest.Client(t), clustertest.Namespace(t)
			nodeName := "node-of-" + namespace
			dir := provision(t, client, nodeName)
			if _, err := client.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim(tc.selected), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			// A claim that is made for this node afterwards tells that the first one was passed by.
			second := claim(nodeName)
			second.Name = "second"
			if _, err := client.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, 20*time.Second, func() (bool, string) {
				entries, err := os.ReadDir(dir)
				return err == nil && len(entries) > 0, "the second claim has no directory"
			})
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 || !strings.Contains(entries[0].Name(), "_second_") {
				t.Errorf("directories = %v (%v), want that of the second claim only", entries, err)
			}
		})
	}
}
