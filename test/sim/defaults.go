package sim

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// epoch is the only time there is.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// defaulter fills in some of the API server's defaults: enough that a live
// object says more than its intent did.
type defaulter struct{}

// Default implements runtime.ObjectDefaulter.
func (defaulter) Default(o runtime.Object) { fill(o) }

func fill(o runtime.Object) {
	switch x := o.(type) {
	case *corev1.Service:
		fillService(x)
	case *appsv1.StatefulSet:
		fillStatefulSet(x)
	case *corev1.Secret:
		if x.Type == "" {
			x.Type = corev1.SecretTypeOpaque
		}
	}
}

func fillService(s *corev1.Service) {
	orDefault(&s.Spec.Type, corev1.ServiceTypeClusterIP)
	orDefault(&s.Spec.SessionAffinity, corev1.ServiceAffinityNone)
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		orDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
}

func fillStatefulSet(s *appsv1.StatefulSet) {
	if s.Spec.Replicas == nil {
		s.Spec.Replicas = ptr.To[int32](1)
	}
	orDefault(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	orDefault(&s.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if s.Spec.RevisionHistoryLimit == nil {
		s.Spec.RevisionHistoryLimit = ptr.To[int32](10)
	}
	for i := range s.Spec.VolumeClaimTemplates {
		c := &s.Spec.VolumeClaimTemplates[i]
		if c.Spec.VolumeMode == nil {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
		}
		c.APIVersion, c.Kind, c.Status.Phase = "v1", "PersistentVolumeClaim", corev1.ClaimPending
	}
	fillPod(&s.Spec.Template.Spec)
}

func fillPod(p *corev1.PodSpec) {
	orDefault(&p.RestartPolicy, corev1.RestartPolicyAlways)
	orDefault(&p.DNSPolicy, corev1.DNSClusterFirst)
	orDefault(&p.SchedulerName, corev1.DefaultSchedulerName)
	if p.TerminationGracePeriodSeconds == nil {
		p.TerminationGracePeriodSeconds = ptr.To[int64](30)
	}
	if p.SecurityContext == nil {
		p.SecurityContext = &corev1.PodSecurityContext{}
	}
	for _, list := range [][]corev1.Container{p.InitContainers, p.Containers} {
		for i := range list {
			c := &list[i]
			orDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
			orDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
			orDefault(&c.ImagePullPolicy, corev1.PullIfNotPresent)
			for j := range c.Ports {
				orDefault(&c.Ports[j].Protocol, corev1.ProtocolTCP)
			}
		}
	}
}

func orDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// assign is what the API server decides at creation.
func assign(o client.Object, n int64) {
	s, ok := o.(*corev1.Service)
	if !ok || s.Spec.ClusterIP != "" {
		return
	}
	s.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", n/250, n%250+1)
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
}

// immutable refuses some changes that the API server refuses.
func immutable(key Key, live, next client.Object) error {
	var bad field.ErrorList
	refuse := func(path string, was, is any) {
		if !equality.Semantic.DeepEqual(was, is) {
			bad = append(bad, field.Invalid(field.NewPath(path), is, "field is immutable"))
		}
	}
	switch was := live.(type) {
	case *corev1.Service:
		if is, ok := next.(*corev1.Service); ok {
			refuse("spec.clusterIP", was.Spec.ClusterIP, is.Spec.ClusterIP)
		}
	case *appsv1.StatefulSet:
		if is, ok := next.(*appsv1.StatefulSet); ok {
			refuse("spec.serviceName", was.Spec.ServiceName, is.Spec.ServiceName)
			refuse("spec.podManagementPolicy", was.Spec.PodManagementPolicy, is.Spec.PodManagementPolicy)
			refuse("spec.selector", was.Spec.Selector, is.Spec.Selector)
			refuse("spec.volumeClaimTemplates", was.Spec.VolumeClaimTemplates, is.Spec.VolumeClaimTemplates)
		}
	case *corev1.ConfigMap:
		if is, ok := next.(*corev1.ConfigMap); ok && ptr.Deref(was.Immutable, false) {
			refuse("data", was.Data, is.Data)
		}
	}
	if len(bad) > 0 {
		return apierrors.NewInvalid(key.Kind.GroupKind(), key.Name, bad)
	}
	return nil
}
