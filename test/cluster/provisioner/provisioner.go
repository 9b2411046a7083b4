// Package provisioner gives claims of one node their volumes: directories of
// that node, made when a claim's Pod is scheduled and removed when the claim
// is deleted. It stands in for a storage driver in a local cluster.
package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// ClassName is the storage class, the cluster's default.
	ClassName = "fairlead-local"
	// Driver is the name that the class and its volumes carry.
	Driver = "fairlead.dev/local"

	selectedNode    = "volume.kubernetes.io/selected-node"
	provisionedBy   = "pv.kubernetes.io/provisioned-by"
	defaultClass    = "storageclass.kubernetes.io/is-default-class"
	volumesFullMode = 0o777 // whatever user a container runs as
)

// Class returns the storage class.
func Class() *storagev1.StorageClass {
	reclaim, binding, grow := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingWaitForFirstConsumer, true
	return &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: ClassName, Annotations: map[string]string{defaultClass: "true"}},
		Provisioner:          Driver,
		ReclaimPolicy:        &reclaim,
		VolumeBindingMode:    &binding,
		AllowVolumeExpansion: &grow,
	}
}

// Provisioner makes volumes on one node.
type Provisioner struct {
	Client kubernetes.Interface
	Dir    string // where the node keeps the data
	Node   string
	Log    *slog.Logger
}

// item names a claim or, with an empty namespace, a volume.
type item = cache.ObjectName

// Run works until the context ends.
func (p *Provisioner) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(p.Client, 0)
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[item](100*time.Millisecond, 10*time.Second))
	defer queue.ShutDown()
	enqueue := func(obj any) {
		if name, err := cache.ObjectToName(obj); err == nil {
			queue.Add(name)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }}
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		next, shutdown := queue.Get()
		if shutdown {
			return ctx.Err()
		}
		if err := p.work(ctx, next); err != nil && !apierrors.IsConflict(err) {
			p.Log.Error("will be tried again", "object", next.String(), "error", err)
			queue.AddRateLimited(next)
		} else if err != nil {
			queue.AddRateLimited(next)
		} else {
			queue.Forget(next)
		}
		queue.Done(next)
	}
}

// work brings one claim or volume where it belongs. It reads from the server:
// volumes are few, and what a cache has missed would be made twice.
func (p *Provisioner) work(ctx context.Context, name item) error {
	if name.Namespace == "" {
		volume, err := p.Client.CoreV1().PersistentVolumes().Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return p.reclaim(ctx, volume)
	}
	claim, err := p.Client.CoreV1().PersistentVolumeClaims(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != ClassName {
		return err
	}
	if claim.Spec.VolumeName != "" {
		return p.grow(ctx, claim)
	}
	if claim.Annotations[selectedNode] != p.Node || claim.DeletionTimestamp != nil {
		return nil // no Pod wants it yet, or none any more
	}
	return p.provide(ctx, claim)
}

// provide makes the directory and the volume of a claim.
func (p *Provisioner) provide(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	volume := p.volume(claim)
	path := volume.Spec.Local.Path
	if err := os.MkdirAll(path, volumesFullMode); err != nil {
		return err
	}
	if err := os.Chmod(path, volumesFullMode); err != nil { // whatever the umask
		return err
	}
	_, err := p.Client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if err == nil {
		p.Log.Info("volume made", "claim", claim.Namespace+"/"+claim.Name, "path", path)
	}
	if apierrors.IsAlreadyExists(err) { // by an earlier try
		return nil
	}
	return err
}

// volume is the volume of a claim. Its name carries the claim's uid, so that a
// claim that is deleted and made again begins empty; its directory's name can
// be read by a person.
func (p *Provisioner) volume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	mode := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Annotations: map[string]string{provisionedBy: Driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              ClassName,
			VolumeMode:                    &mode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{
				Path: filepath.Join(p.Dir, fmt.Sprintf("%s_%s_%s", claim.Namespace, claim.Name, claim.UID)),
			}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.Node},
				}}}},
			}},
		},
	}
}

// reclaim removes a volume whose claim is gone, and its data.
func (p *Provisioner) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[provisionedBy] != Driver || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.Spec.Local == nil {
		return nil
	}
	path := volume.Spec.Local.Path
	if filepath.Dir(path) != filepath.Clean(p.Dir) {
		return fmt.Errorf("path %q of volume %q is not one of this provisioner's", path, volume.Name)
	}
	if err := os.RemoveAll(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := p.Client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &volume.UID},
	})
	if err == nil {
		p.Log.Info("volume removed", "volume", volume.Name, "path", path)
	}
	return ignoreGone(err)
}

// grow says yes to a claim that asks for more than its volume has: a directory
// has no size.
func (p *Provisioner) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if have := claim.Status.Capacity[corev1.ResourceStorage]; claim.Status.Phase != corev1.ClaimBound || want.Cmp(have) <= 0 {
		return nil
	}
	volume, err := p.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil || volume.Annotations[provisionedBy] != Driver {
		return err
	}
	if have := volume.Spec.Capacity[corev1.ResourceStorage]; want.Cmp(have) > 0 {
		volume.Spec.Capacity[corev1.ResourceStorage] = want
		if _, err := p.Client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	claim.Status.Capacity[corev1.ResourceStorage] = want
	_, err = p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// ignoreGone takes an object that is gone already for one that was deleted.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
