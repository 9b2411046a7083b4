package stories

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// migrated begins with a cluster that another operator made; the migration of its settings
// is approved, as the plugin does when they are copied.
var migrated = tale{
	name: "settings of 1+1 that were taken over are migrated", before: legacy(one), setup: func(context.Context, *scene) error { return nil },
	act: approvesMigration, unsettled: keepsSettings, replaced: 1,
}

const migrationID = "0123456789abcdef"

// approvesMigration writes what `kubectl fairlead runtime-config migrate` writes at its end.
func approvesMigration(ctx context.Context, s *scene) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		dc, err := s.doris(ctx)
		if err != nil {
			return err
		}
		a := runtimeconfig.Approval{ID: migrationID, Cluster: string(dc.UID), Generation: dc.Generation, Components: map[runtimeconfig.Kind]runtimeconfig.Copied{}}
		for _, c := range []struct{ kind, volume, path string }{
			{"fe", "meta", "/opt/apache-doris/fe/doris-meta"}, {"be", "data", "/opt/apache-doris/be/storage"},
		} {
			set := &appsv1.StatefulSet{}
			if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "doris-" + c.kind}, set); err != nil {
				return err
			}
			a.Components[runtimeconfig.Kind(c.kind)] = runtimeconfig.Copied{
				UID: string(set.UID), Generation: set.Generation, Replicas: *set.Spec.Replicas, Volume: c.volume, MountPath: c.path,
			}
		}
		if dc.Annotations == nil {
			dc.Annotations = map[string]string{}
		}
		dc.Annotations[dorisv1.AnnotationRuntimeConfigMigration] = a.String()
		dc.Spec.RuntimeConfigPersistence = &dorisv1.RuntimeConfigPersistence{Enabled: new(true)}
		return s.client.Update(ctx, dc, client.FieldOwner("a-person"))
	})
}

// keepsSettings says what is missing until every Pod keeps its settings, and was told to
// look for its copy.
func keepsSettings(ctx context.Context, s *scene) string {
	if missing := settledCluster(ctx, s); missing != "" {
		return missing
	}
	pods := &corev1.PodList{}
	if err := s.client.List(ctx, pods, client.InNamespace(s.namespace)); err != nil {
		return err.Error()
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		for _, kind := range doris.Components() {
			r := runtimeconfig.Found(&p.Spec, string(kind))
			if p.Labels[dorisv1.LabelComponent] == string(kind) && (r == nil || r.Migrated != fmt.Sprintf("%s:1", migrationID)) {
				return fmt.Sprintf("%s keeps its settings as %+v", p.Name, r)
			}
		}
	}
	return ""
}
