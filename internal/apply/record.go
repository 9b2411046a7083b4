package apply

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recordManager owns the fields of records.
const recordManager = "fairlead"

// Recorder writes the ConfigMap in which an operator tells of itself. It is apart
// from the Writer: there is no custom resource that this belongs to, and nothing
// is watched for it.
type Recorder struct{ client client.Client }

// NewRecorder returns a Recorder that speaks to the cluster of cfg by c.
func NewRecorder(cfg *rest.Config, c *http.Client) (*Recorder, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), apimeta.RESTScopeNamespace)
	made, err := client.New(cfg, client.Options{HTTPClient: c, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("client of records: %w", err)
	}
	return &Recorder{client: made}, nil
}

// Record makes the ConfigMap say this. It is one request, which changes nothing
// where the ConfigMap says it already.
func (r *Recorder) Record(ctx context.Context, namespace, name string, labels, data map[string]string) error {
	wanted := corev1ac.ConfigMap(name, namespace).WithLabels(labels).WithData(data)
	if err := r.client.Apply(ctx, wanted, client.FieldOwner(recordManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", namespace, name, err)
	}
	return nil
}
