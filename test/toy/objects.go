package toy

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

func configMapNames(t *Toy) []string {
	out := []string{t.Name + "-config"}
	for _, e := range t.Spec.Extra {
		out = append(out, t.Name+"-"+e)
	}
	return out
}

func setNames(t *Toy) []string {
	if t.Spec.Replicas == nil {
		return nil
	}
	return []string{t.Name + "-a", t.Name + "-b"}
}

func ref(t *Toy, kind, name string) plan.Ref {
	return plan.Ref{Kind: kind, Namespace: t.Namespace, Name: name}
}

func objectMeta(t *Toy, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: t.Namespace, Name: name, Labels: map[string]string{label: t.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: GroupVersion.String(), Kind: Kind, Name: t.Name, UID: t.UID, Controller: new(true),
		}},
	}
}

func configMap(t *Toy, name, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(t, name), Data: map[string]string{"content": content}}
}

func service(t *Toy) *corev1.Service {
	return &corev1.Service{ObjectMeta: objectMeta(t, t.Name), Spec: corev1.ServiceSpec{
		Selector: map[string]string{label: t.Name}, Ports: []corev1.ServicePort{{Name: "query", Port: 9030}},
	}}
}

func set(t *Toy, name string) *appsv1.StatefulSet {
	pods := map[string]string{label: t.Name, "set": name}
	return &appsv1.StatefulSet{ObjectMeta: objectMeta(t, name), Spec: appsv1.StatefulSetSpec{
		Replicas: t.Spec.Replicas, ServiceName: t.Name, PodManagementPolicy: appsv1.ParallelPodManagement,
		Selector:       &metav1.LabelSelector{MatchLabels: pods},
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: pods},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: t.Spec.Image}}},
		},
	}}
}

// orNil is an object as an interface that is nil when the object is.
func orNil(o client.Object) client.Object {
	if reflect.ValueOf(o).IsNil() {
		return nil
	}
	return o
}

// CRD is the definition of the Toy.
func CRD() *apiextensionsv1.CustomResourceDefinition {
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "toys." + GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: GroupVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "toys", Singular: "toy", Kind: Kind, ListKind: Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: GroupVersion.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open},
				}},
			}},
		},
	}
}
