package doris

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/system/doris/overrides"
)

// World is what is observed of one DorisCluster.
type World struct {
	// Owned holds the objects that belong to the cluster, by kind and name.
	StatefulSets map[string]*appsv1.StatefulSet
	Services     map[string]*corev1.Service
	OwnMaps      map[string]*corev1.ConfigMap
	OwnSecrets   map[string]*corev1.Secret
	Autoscalers  map[string]*autoscalingv2.HorizontalPodAutoscaler
	// FrontendClaims is how many frontends have claims.
	FrontendClaims int
	// OwnClaims are the claims of Pods, by name.
	OwnClaims map[string]*corev1.PersistentVolumeClaim
	// Pods of each component, in the order of their names.
	Pods map[string][]corev1.Pod
	// Budgets are the disruption budgets of ours, by name, and OtherBudgets those that
	// others made in the namespace.
	Budgets, OtherBudgets map[string]*policyv1.PodDisruptionBudget
	// ConfigMaps that the spec names; nil for one that does not exist.
	ConfigMaps map[string]*corev1.ConfigMap
	// Secrets that the spec names, and whether they exist.
	Secrets map[string]bool
	// Versions are those of them that exist.
	Versions map[string]string
	// ProcessSecrets is what is known of the Secrets that processes read.
	ProcessSecrets SecretView
	// Claims that the spec names; nil for one that does not exist.
	Claims map[string]*corev1.PersistentVolumeClaim
	// Revisions are the ControllerRevisions of each set; nil unless they were asked
	// for, to see what nothing names any more.
	Revisions map[string][]appsv1.ControllerRevision
	// Nodes is what the nodes of Pods said of their settings, of those that had to
	// be asked.
	Nodes map[string]NodeReport
	// Polls is what the nodes of each component said last of settings that were changed
	// in them.
	Polls map[dorisv1.ComponentType][]overrides.Poll
	// Database is what the database said of its members; nil when nobody asked.
	Database *DatabaseView
	// Account is the version of the Secret that the resource names as its account.
	Account string
	// AccountFault says why nobody can log in with what that Secret holds.
	AccountFault string
}

// Watches lists the kinds whose objects belong to a DorisCluster.
func Watches() []observe.Watch {
	own, pods := labelled(dorisv1.LabelOwner), labelled(dorisv1.LabelCluster)
	byReference := func(o client.Object) string { return ownerName(o.GetOwnerReferences()) }
	return []observe.Watch{
		{Object: &appsv1.StatefulSet{}, Selector: own, Owner: byReference},
		{Object: &corev1.Service{}, Selector: own, Owner: byReference},
		{Object: &corev1.ConfigMap{}, Selector: own, Owner: byReference},
		{Object: &corev1.Secret{}, Selector: own, Owner: byReference},
		{Object: &corev1.PersistentVolumeClaim{}, Selector: own, Owner: claimOwner},
		{Object: &autoscalingv2.HorizontalPodAutoscaler{}, Selector: own, Owner: byReference},
		{Object: &policyv1.PodDisruptionBudget{}, Selector: labels.Everything(), Owner: byReference, Neighbours: true, Matters: letsGo},
		{Object: &corev1.Pod{}, Selector: pods, Owner: func(o client.Object) string { return o.GetLabels()[dorisv1.LabelCluster] }},
	}
}

func labelled(key string) labels.Selector {
	r, err := labels.NewRequirement(key, selection.Exists, nil)
	if err != nil {
		panic(fmt.Sprintf("label %q: %v", key, err)) // a constant of this package is wrong
	}
	return labels.NewSelector().Add(*r)
}

func ownerName(refs []metav1.OwnerReference) string {
	for _, r := range refs {
		if r.Kind == dorisv1.Kind {
			return r.Name
		}
	}
	return ""
}

// OwnerOf tells to which DorisCluster an object of any watched kind belongs.
func OwnerOf(o client.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return o.GetLabels()[dorisv1.LabelCluster]
	case *corev1.PersistentVolumeClaim:
		return claimOwner(o)
	}
	return ownerName(o.GetOwnerReferences())
}

// Observe implements the reading half of the system.
func (s *System) Observe(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster) (World, error) {
	w := World{
		StatefulSets: map[string]*appsv1.StatefulSet{}, Services: map[string]*corev1.Service{},
		OwnMaps: map[string]*corev1.ConfigMap{}, OwnSecrets: map[string]*corev1.Secret{},
		Autoscalers: map[string]*autoscalingv2.HorizontalPodAutoscaler{},
		Pods:        map[string][]corev1.Pod{}, ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]bool{}, Versions: map[string]string{},
		Claims: map[string]*corev1.PersistentVolumeClaim{},
	}
	if err := observeOwned(ctx, r, dc, w); err != nil {
		return World{}, err
	}
	if err := observeClaims(ctx, r, dc, &w); err != nil {
		return World{}, err
	}
	if err := observeBudgets(ctx, r, dc, &w); err != nil {
		return World{}, err
	}
	if err := observeReferences(ctx, r, dc, &w); err != nil {
		return World{}, err
	}
	if err := s.observeSecrets(ctx, r, dc, &w); err != nil {
		return World{}, err
	}
	if err := observeRevisions(ctx, r, dc, &w); err != nil {
		return World{}, err
	}
	s.observeAccount(ctx, dc, &w)
	s.observeNodes(ctx, dc, &w)
	s.observeDatabase(ctx, dc, &w)
	s.observeOverrides(ctx, dc, &w)
	return w, nil
}

// observeReferences reads what the spec refers to.
func observeReferences(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster, w *World) error {
	refs := References(dc)
	for _, name := range refs.ConfigMaps {
		cm, err := r.ConfigMap(ctx, name)
		if err != nil {
			return err
		}
		w.ConfigMaps[name] = cm
	}
	for _, name := range refs.Secrets {
		secret, err := r.Secret(ctx, name)
		if err != nil {
			return err
		}
		if w.Secrets[name] = secret != nil; secret == nil {
			continue
		}
		w.Versions[name] = string(secret.UID) + " " + secret.ResourceVersion
		if name == dc.Spec.AuthSecret {
			w.Account = w.Versions[name]
		}
	}
	for _, name := range refs.Claims {
		claim, err := r.Claim(ctx, name)
		if err != nil {
			return err
		}
		w.Claims[name] = claim
	}
	return nil
}

func observeOwned(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster, w World) error {
	for _, name := range ownNames(dc) {
		if err := observeOne(ctx, r, types.NamespacedName{Namespace: dc.Namespace, Name: name.object}, name.kind, w); err != nil {
			return err
		}
	}
	if err := observeCopies(ctx, r, w); err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := r.Owned(ctx, pods); err != nil {
		return fmt.Errorf("listing Pods: %w", err)
	}
	for _, p := range pods.Items {
		if c, ours := componentOf(dc, w, &p); ours {
			w.Pods[string(c)] = append(w.Pods[string(c)], p)
		}
	}
	for c := range w.Pods {
		sortPods(w.Pods[c])
	}
	return nil
}

// observeOne reads one object of the operator's own, if it is there.
func observeOne(ctx context.Context, r observe.Reader, key types.NamespacedName, kind string, w World) error {
	switch kind {
	case "StatefulSet":
		return found(ctx, r, key, &appsv1.StatefulSet{}, w.StatefulSets)
	case "Service":
		return found(ctx, r, key, &corev1.Service{}, w.Services)
	case "ConfigMap":
		return found(ctx, r, key, &corev1.ConfigMap{}, w.OwnMaps)
	case "Secret":
		return found(ctx, r, key, &corev1.Secret{}, w.OwnSecrets)
	case kindAutoscaler:
		return found(ctx, r, key, &autoscalingv2.HorizontalPodAutoscaler{}, w.Autoscalers)
	}
	return nil
}

// observeCopies reads the copies of users' ConfigMaps.
func observeCopies(ctx context.Context, r observe.Reader, w World) error {
	owned := &corev1.ConfigMapList{}
	if err := r.Owned(ctx, owned); err != nil {
		return fmt.Errorf("listing ConfigMaps: %w", err)
	}
	for i := range owned.Items {
		if cm := &owned.Items[i]; cm.Annotations[labelCopy] != "" {
			w.OwnMaps[cm.Name] = cm
		}
	}
	return nil
}

// observeClaims reads the claims of Pods and counts the frontends that have some. The name of a claim is that
// of its template, of the set and the ordinal.
func observeClaims(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster, w *World) error {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.Owned(ctx, claims); err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	set := "-" + StatefulSetName(dc.Name, dorisv1.ComponentFE) + "-"
	ordinals := map[int]bool{}
	w.OwnClaims = map[string]*corev1.PersistentVolumeClaim{}
	for i := range claims.Items {
		name := claims.Items[i].Name
		w.OwnClaims[name] = &claims.Items[i]
		if n := ordinalOf(name); n >= 0 && claims.Items[i].DeletionTimestamp == nil && strings.HasSuffix(name, set+strconv.Itoa(n)) {
			ordinals[n] = true
		}
	}
	w.FrontendClaims = len(ordinals)
	return nil
}

// claimOwner tells to which DorisCluster a claim belongs: the StatefulSet
// controller gives claims the labels by which Pods are selected.
func claimOwner(o client.Object) string {
	labels := o.GetLabels()
	name, ours := strings.CutSuffix(labels[dorisv1.LabelOwner], "-"+labels[dorisv1.LabelComponent])
	if !ours {
		return ""
	}
	return name
}

// componentOf tells of which component a Pod is. Labels are not enough: anybody
// may put them on a Pod, and what is counted as a member may be evicted.
//
// A Pod without an owner is that of a set which is made again, if the note of that
// names it.
func componentOf(dc *dorisv1.DorisCluster, w World, p *corev1.Pod) (dorisv1.ComponentType, bool) {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		for _, c := range rendered {
			if a, found := w.readAgain(dc.Name, c); found && slices.Contains(a.Pods, p.UID) {
				return c, true
			}
		}
	}
	if owner == nil || owner.Kind != "StatefulSet" {
		return "", false
	}
	for _, c := range rendered {
		if owner.Name == StatefulSetName(dc.Name, c) {
			return c, true
		}
	}
	return "", false
}

// found reads one object into the map, or leaves it out when it is absent.
func found[T client.Object](ctx context.Context, r observe.Reader, key types.NamespacedName, obj T, into map[string]T) error {
	err := r.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %q: %w", obj, key, err)
	}
	into[key.Name] = obj
	return nil
}
