package main

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forbiddenVerbs would let the operator hand out rights or be somebody else.
var forbiddenVerbs = []string{rbacv1.VerbAll, "escalate", "bind", "impersonate"}

// forbiddenGroups hold the objects with which rights are granted.
var forbiddenGroups = []string{rbacv1.APIGroupAll, rbacv1.GroupName}

// check refuses an object that asks for too much or lives in the wrong place.
func check(object metav1.Object) error {
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		return checkRules(o.Rules)
	case *rbacv1.Role:
		return errors.Join(checkNamespace(o), checkRules(o.Rules))
	case *rbacv1.ClusterRoleBinding:
		return checkSubjects(o.Subjects)
	case *rbacv1.RoleBinding:
		return errors.Join(checkNamespace(o), checkSubjects(o.Subjects))
	case *corev1.ServiceAccount:
		return checkNamespace(o)
	case *appsv1.Deployment:
		return errors.Join(checkNamespace(o), checkPod(o.Spec.Template.Spec))
	case *corev1.Namespace:
		return checkPodSecurity(o)
	}
	return nil
}

func checkNamespace(object metav1.Object) error {
	if object.GetNamespace() != namespace {
		return fmt.Errorf("namespace is %q, not %q", object.GetNamespace(), namespace)
	}
	return nil
}

// checkRules refuses wildcards and whatever would let the operator raise itself.
func checkRules(rules []rbacv1.PolicyRule) error {
	var errs []error
	for i, rule := range rules {
		refuse := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("rule %d: %s", i, fmt.Sprintf(format, args...)))
		}
		if len(rule.NonResourceURLs) > 0 {
			refuse("non-resource URLs %q", rule.NonResourceURLs)
		}
		for _, group := range rule.APIGroups {
			if slices.Contains(forbiddenGroups, group) {
				refuse("API group %q", group)
			}
		}
		for _, resource := range rule.Resources {
			if resource == rbacv1.ResourceAll || resource == "*/*" {
				refuse("resource %q", resource)
			}
		}
		for _, verb := range rule.Verbs {
			if slices.Contains(forbiddenVerbs, verb) {
				refuse("verb %q", verb)
			}
		}
	}
	return errors.Join(errs...)
}

// checkSubjects allows the operator's own account only.
func checkSubjects(subjects []rbacv1.Subject) error {
	if len(subjects) != 1 || subjects[0].Kind != rbacv1.ServiceAccountKind || subjects[0].Namespace != namespace {
		return fmt.Errorf("subjects are not the one ServiceAccount in %q", namespace)
	}
	return nil
}

// checkPod holds the operator's Pod to the restricted profile and a little more:
// a root filesystem that is not written, and limits.
func checkPod(pod corev1.PodSpec) error {
	security := pod.SecurityContext
	if security == nil {
		security = &corev1.PodSecurityContext{}
	}
	errs := []error{
		need(isTrue(security.RunAsNonRoot), "pod may run as root"),
		need(security.SeccompProfile != nil && security.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
			"seccomp profile is not RuntimeDefault"),
		need(!pod.HostNetwork && !pod.HostPID && !pod.HostIPC, "pod shares a namespace of the host"),
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		if err := checkContainer(container); err != nil {
			errs = append(errs, fmt.Errorf("container %q %w", container.Name, err))
		}
	}
	return errors.Join(errs...)
}

func checkContainer(container corev1.Container) error {
	security := container.SecurityContext
	if security == nil {
		security = &corev1.SecurityContext{}
	}
	capabilities := security.Capabilities
	if capabilities == nil {
		capabilities = &corev1.Capabilities{}
	}
	requests, limits := container.Resources.Requests, container.Resources.Limits
	return errors.Join(
		need(security.AllowPrivilegeEscalation != nil && !*security.AllowPrivilegeEscalation, "may raise its privileges"),
		need(isTrue(security.ReadOnlyRootFilesystem), "may write its root filesystem"),
		need(slices.Equal(capabilities.Drop, []corev1.Capability{"ALL"}) && len(capabilities.Add) == 0, "keeps capabilities"),
		need(!requests.Cpu().IsZero() && !requests.Memory().IsZero(), "requests no CPU or no memory"),
		need(!limits.Memory().IsZero(), "has no memory limit"),
	)
}

// need is the complaint what, unless it holds.
func need(holds bool, what string) error {
	if holds {
		return nil
	}
	return errors.New(what)
}

func isTrue(b *bool) bool { return b != nil && *b }

func checkPodSecurity(o *corev1.Namespace) error {
	const label = "pod-security.kubernetes.io/enforce"
	if o.Name != namespace || o.Labels[label] != "restricted" {
		return fmt.Errorf("want name %q and label %s=restricted", namespace, label)
	}
	return nil
}
