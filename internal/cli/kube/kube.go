// Package kube connects the verbs of the kubectl plugin to a cluster: how they
// read, and the only thing that they write, annotations of a custom resource and, with
// the approval of a migration, the field that asks for it.
package kube

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// Agent is how the plugin calls itself to the API server, also as the manager of
// the annotations that it writes.
const Agent = "kubectl-fairlead"

// Session is a connection to a cluster.
type Session struct {
	client.Reader
	writer client.Client
	config *rest.Config
	// Namespace is the one in effect; Chosen tells that --namespace names it.
	Namespace string
	Chosen    bool
}

// Scheme holds the kinds that the verbs read.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(dorisv1.AddToScheme(s))
	return s
}

// Connect connects as kubectl would.
func Connect(flags *genericclioptions.ConfigFlags) (*Session, error) {
	cfg, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	cfg.UserAgent = Agent
	cfg.QPS, cfg.Burst = 50, 300 // as kubectl: one plan is a burst of reads
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	asking, err := apiutil.NewDynamicRESTMapper(cfg, http)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	mapper := apimeta.FirstHitRESTMapper{MultiRESTMapper: apimeta.MultiRESTMapper{wellKnown(), asking}}
	c, err := client.New(cfg, client.Options{Scheme: Scheme(), Mapper: mapper, HTTPClient: http})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	namespace, chosen, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	return &Session{Reader: c, writer: c, config: cfg, Namespace: namespace, Chosen: chosen}, nil
}

// wellKnown are the kinds that a plan reads, so that the API server need not be
// asked each time where they are. It is asked about any other.
func wellKnown() apimeta.RESTMapper {
	m := apimeta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pod", "Service", "ConfigMap", "Secret", "PersistentVolumeClaim"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), apimeta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), apimeta.RESTScopeRoot)
	m.Add(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), apimeta.RESTScopeNamespace)
	m.AddSpecific(dorisv1.GroupVersionKind(), resource("dorisclusters"), resource("doriscluster"), apimeta.RESTScopeNamespace)
	return m
}

func resource(name string) schema.GroupVersionResource {
	return dorisv1.GroupVersionKind().GroupVersion().WithResource(name)
}

// Observer reads for one DorisCluster what the operator would.
func Observer(c client.Reader, dc *dorisv1.DorisCluster) observe.Reader {
	return observe.Direct{
		Client: c, Owners: doris.OwnerOf,
		Owner: types.NamespacedName{Namespace: dc.Namespace, Name: dc.Name},
	}
}

// Cluster reads a DorisCluster of the namespace in effect.
func (s *Session) Cluster(ctx context.Context, name string) (*dorisv1.DorisCluster, error) {
	dc := &dorisv1.DorisCluster{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, dc); err != nil {
		return nil, s.explain(err, fmt.Sprintf("reading DorisCluster %q in namespace %q", name, s.Namespace))
	}
	return dc, nil
}

// Current reads the DorisCluster that exists where a manifest would be applied;
// nil when there is none.
func (s *Session) Current(ctx context.Context, manifest *dorisv1.DorisCluster) (*dorisv1.DorisCluster, error) {
	dc := &dorisv1.DorisCluster{}
	err := s.Get(ctx, client.ObjectKeyFromObject(manifest), dc)
	if apierrors.IsNotFound(err) && !noSuchKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.explain(err, fmt.Sprintf("reading DorisCluster %q in namespace %q", manifest.Name, manifest.Namespace))
	}
	return dc, nil
}

// Clusters lists the DorisClusters of a namespace, or of all if it is empty.
func (s *Session) Clusters(ctx context.Context, namespace string) ([]dorisv1.DorisCluster, error) {
	list := &dorisv1.DorisClusterList{}
	if err := s.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, s.explain(err, "listing DorisClusters")
	}
	return list.Items, nil
}

// NoNamespace tells whether a namespace is known not to exist.
func (s *Session) NoNamespace(ctx context.Context, name string) bool {
	return apierrors.IsNotFound(s.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}))
}

// Annotate sets annotations of a DorisCluster, and takes away those whose value
// is nil, if it still is the one that was read.
func (s *Session) Annotate(ctx context.Context, dc *dorisv1.DorisCluster, annotations map[string]*string) error {
	return s.patch(ctx, dc, annotations, nil)
}

// KeepSettings approves the migration of the settings of a DorisCluster and asks for them
// to be kept, in one write, if it still is the one that was read.
func (s *Session) KeepSettings(ctx context.Context, dc *dorisv1.DorisCluster, approval string) error {
	return s.patch(ctx, dc, map[string]*string{dorisv1.AnnotationRuntimeConfigMigration: &approval},
		map[string]any{"runtimeConfigPersistence": map[string]any{"enabled": true}})
}

// patch is the only write of the plugin.
func (s *Session) patch(ctx context.Context, dc *dorisv1.DorisCluster, annotations map[string]*string, spec map[string]any) error {
	fields := map[string]any{"metadata": map[string]any{
		"uid": dc.UID, "resourceVersion": dc.ResourceVersion, "annotations": annotations,
	}}
	if spec != nil {
		fields["spec"] = spec
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encoding the annotations of DorisCluster %q: %w", dc.Name, err)
	}
	//nolint:forbidigo // annotations of the custom resource are how a person speaks to the operator
	err = s.writer.Patch(ctx, dc, client.RawPatch(types.MergePatchType, body), client.FieldOwner(Agent))
	if err != nil {
		return fmt.Errorf("annotating DorisCluster %q in namespace %q: %w", dc.Name, dc.Namespace, err)
	}
	return nil
}

// explain says in plain words what the API server says in its own.
func (s *Session) explain(err error, doing string) error {
	if noSuchKind(err) {
		return fmt.Errorf("%s: the cluster has no kind DorisCluster; install Fairlead first: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// noSuchKind tells an answer about a path that the API server does not serve from
// one about an object.
func noSuchKind(err error) bool {
	return apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
