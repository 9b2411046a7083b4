package observe_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/test/sim"
)

// What the plugin reads directly and what the operator reads from its caches is
// the same.
func TestDirectAndCachedReadTheSame(t *testing.T) {
	store := sim.NewStore(clientgoscheme.Scheme)
	owner := types.NamespacedName{Namespace: "ns", Name: "mine"}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"owner": "mine"}}, Data: map[string]string{"k": "v"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Labels: map[string]string{"owner": "other"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "a", Labels: map[string]string{"owner": "mine"}}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pvc"}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Labels: map[string]string{"l": "v"}}, Data: map[string][]byte{"p": []byte("hunter2")}},
	} {
		if _, err := store.Create(o, "user"); err != nil {
			t.Fatal(err)
		}
	}
	owners := func(o client.Object) string { return o.GetLabels()["owner"] }
	reader := sim.Reader{Store: store, Owner: owners}
	lease := observe.NewReferences(reader, func(types.NamespacedName) {}).Lease(owner)
	defer lease.Close()
	for name, r := range map[string]observe.Reader{
		"direct": observe.Direct{Client: reader, Owner: owner, Owners: owners},
		"cached": observe.Cached{Client: reader, Cache: reader, References: lease, Owner: owner},
	} {
		t.Run(name, func(t *testing.T) {
			var list corev1.ConfigMapList
			if err := r.Owned(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].Namespace != "ns" || list.Items[0].Name != "a" {
				t.Errorf("owned: %v", list.Items)
			}
			got := &corev1.ConfigMap{}
			if err := r.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, got); err != nil || got.Data["k"] != "v" {
				t.Errorf("Get = %v, %v", got, err)
			}
			if err := r.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "none"}, got); !apierrors.IsNotFound(err) {
				t.Errorf("Get of what is missing: %v", err)
			}
			cm, err := r.ConfigMap(t.Context(), "c")
			if err != nil || cm == nil || cm.Namespace != "ns" {
				t.Errorf("ConfigMap = %v, %v", cm, err)
			}
			if none, err := r.ConfigMap(t.Context(), "none"); none != nil || err != nil {
				t.Errorf("missing ConfigMap = %v, %v", none, err)
			}
			secret, err := r.Secret(t.Context(), "s")
			if err != nil || secret == nil || len(secret.Labels) != 0 || fmt.Sprintf("%T", secret) != "*v1.PartialObjectMetadata" {
				t.Errorf("Secret = %+v, %v", secret, err)
			}
			claim, err := r.Claim(t.Context(), "pvc")
			if err != nil || claim == nil || len(claim.Spec.AccessModes) != 1 {
				t.Errorf("Claim = %+v, %v", claim, err)
			}
			if none, err := r.Claim(t.Context(), "none"); none != nil || err != nil {
				t.Errorf("missing claim = %v, %v", none, err)
			}
			if none, err := r.Secret(t.Context(), "none"); none != nil || err != nil {
				t.Errorf("missing Secret = %v, %v", none, err)
			}
		})
	}
}
