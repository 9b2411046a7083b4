package simnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// LabelSimulated marks the nodes of the simulator.
const LabelSimulated = "simnode.fairlead.dev/simulated"

const labelRole = "node-role.kubernetes.io/worker"

// allocatable is what a node offers: so much that nothing is ever short.
func allocatable() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("100k"),
		corev1.ResourceMemory:           resource.MustParse("1Pi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Pi"),
		corev1.ResourcePods:             resource.MustParse("10k"),
	}
}

// nodeObject is one simulated node.
func nodeObject(o *Options, index int, version string, now metav1.Time) *corev1.Node {
	name := fmt.Sprintf("%s-%d", o.NodePrefix, index)
	conditions := []corev1.NodeCondition{nodeCondition(corev1.NodeReady, true, "KubeletReady", now)}
	for _, pressure := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
	} {
		conditions = append(conditions, nodeCondition(pressure, false, "Simulated", now))
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				LabelSimulated:           "true",
				labelRole:                "",
				corev1.LabelHostname:     name,
				corev1.LabelOSStable:     "linux",
				corev1.LabelArchStable:   "amd64",
				corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", index%o.Zones),
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    allocatable(),
			Allocatable: allocatable(),
			Conditions:  conditions,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: hostIP(index)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: version, ContainerRuntimeVersion: "simnode://1", OperatingSystem: "linux", Architecture: "amd64",
				OSImage: "simulated", KernelVersion: "simulated",
			},
		},
	}
}

func hostIP(index int) string {
	return fmt.Sprintf("10.199.%d.%d", index/250, index%250+1)
}

func nodeCondition(kind corev1.NodeConditionType, is bool, reason string, now metav1.Time) corev1.NodeCondition {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	return corev1.NodeCondition{
		Type: kind, Status: status, Reason: reason, Message: "simulated",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
}

// createNodes makes the nodes that are missing and takes away the taint that
// admission puts on every new one.
func createNodes(ctx context.Context, client kubernetes.Interface, o *Options, version string) error {
	nodes := client.CoreV1().Nodes()
	for i := range o.Nodes {
		node := nodeObject(o, i, version, metav1.NewTime(o.Clock.Now()))
		_, err := nodes.Create(ctx, node, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("create node %q: %w", node.Name, err)
		}
		_, err = nodes.Patch(ctx, node.Name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("remove taints of node %q: %w", node.Name, err)
		}
	}
	return nil
}

// createStorage makes the driver and its default storage class.
func createStorage(ctx context.Context, client kubernetes.Interface) error {
	attach, capacity := false, false
	driver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: Driver},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &attach, StorageCapacity: &capacity},
	}
	_, err := client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create csi driver %q: %w", Driver, err)
	}
	expand, binding, reclaim := true, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        StorageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: Driver, AllowVolumeExpansion: &expand, VolumeBindingMode: &binding, ReclaimPolicy: &reclaim,
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create storage class %q: %w", StorageClass, err)
	}
	return nil
}
