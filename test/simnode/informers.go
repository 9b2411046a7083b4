package simnode

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// informers are the watches of a simulator. ConfigMaps and Secrets are watched
// by their metadata alone, to know when a missing one appears; content is read
// when a container starts, so that it is never older than the Pod.
type informers struct {
	nodes     coreinformers.SharedInformerFactory // the simulated ones
	objects   coreinformers.SharedInformerFactory
	contents  metadatainformer.SharedInformerFactory
	node      cache.SharedIndexInformer
	pod       cache.SharedIndexInformer
	claim     cache.SharedIndexInformer
	volume    cache.SharedIndexInformer
	configMap cache.SharedIndexInformer
	secret    cache.SharedIndexInformer

	podLister   corelisters.PodLister
	claimLister corelisters.PersistentVolumeClaimLister
	classLister storagelisters.StorageClassLister
}

// handlers are called for what the watches bring.
type handlers struct {
	pod, claim, volume, configMap, secret cache.ResourceEventHandler
}

func newInformers(client kubernetes.Interface, contents metadata.Interface) informers {
	nodes := coreinformers.NewSharedInformerFactoryWithOptions(client, 0,
		coreinformers.WithTransform(strip),
		coreinformers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = LabelSimulated + "=true" }))
	objects := coreinformers.NewSharedInformerFactoryWithOptions(client, 0, coreinformers.WithTransform(strip))
	metadataOnly := metadatainformer.NewSharedInformerFactoryWithOptions(contents, 0,
		metadatainformer.WithTransform(stripContent))
	return informers{
		nodes: nodes, objects: objects, contents: metadataOnly,
		node:        nodes.Core().V1().Nodes().Informer(),
		pod:         objects.Core().V1().Pods().Informer(),
		claim:       objects.Core().V1().PersistentVolumeClaims().Informer(),
		volume:      objects.Core().V1().PersistentVolumes().Informer(),
		configMap:   metadataOnly.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer(),
		secret:      metadataOnly.ForResource(corev1.SchemeGroupVersion.WithResource("secrets")).Informer(),
		podLister:   objects.Core().V1().Pods().Lister(),
		claimLister: objects.Core().V1().PersistentVolumeClaims().Lister(),
		classLister: objects.Storage().V1().StorageClasses().Lister(),
	}
}

// strip drops what nobody here looks at.
func strip(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// stripContent keeps of a ConfigMap or Secret that it exists.
func stripContent(obj any) (any, error) {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		}
	}
	return obj, nil
}

// startNodes returns when the nodes are known.
func (i *informers) startNodes(ctx context.Context, handler cache.ResourceEventHandler) error {
	registration, err := i.node.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	i.nodes.Start(ctx.Done())
	return synced(ctx, registration.HasSynced)
}

// start returns when everything else is known.
func (i *informers) start(ctx context.Context, h handlers) error {
	var errs []error
	var waits []cache.InformerSynced
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{{i.pod, h.pod}, {i.claim, h.claim}, {i.volume, h.volume}, {i.configMap, h.configMap}, {i.secret, h.secret}} {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		waits = append(waits, registration.HasSynced)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("watch objects: %w", err)
	}
	waits = append(waits, i.objects.Storage().V1().StorageClasses().Informer().HasSynced)
	i.objects.Start(ctx.Done())
	i.contents.Start(ctx.Done())
	return synced(ctx, waits...)
}

func synced(ctx context.Context, waits ...cache.InformerSynced) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), waits...) {
		return fmt.Errorf("wait for the first list of objects: %w", context.Cause(ctx))
	}
	return nil
}

func (i *informers) shutdown() {
	i.nodes.Shutdown()
	i.objects.Shutdown()
	i.contents.Shutdown()
}

// class finds the storage class of a claim, if the simulator serves it.
func (i *informers) class(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := i.classLister.Get(*claim.Spec.StorageClassName)
	if err != nil || class.Provisioner != Driver {
		return nil
	}
	return class
}
