package stories

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/simnode"
	"github.com/fairlead-dev/fairlead/test/story"
)

// small is the smallest cluster that people write.
const small = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8"}
  beSpec: {replicas: 1, image: "apache/doris:be-2.1.8"}
`

// without is told that something is missing, and waits for it.
const without = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8", configMapInfo: {configMapName: not-there, resolveKey: fe.conf}}
`

// one has one member of each, and claims: its Pods can be replaced.
const one = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec:
    replicas: 1
    image: "apache/doris:fe-2.1.8"
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 1
    image: "apache/doris:be-2.1.8"
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
`

// three has three members of each, and claims.
const three = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec:
    replicas: 3
    image: "apache/doris:fe-2.1.8"
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 3
    image: "apache/doris:be-2.1.8"
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
`

// The stories. A new one is a set-up (nil, if it begins with nothing), an act,
// when it is settled, and how often it may replace a Pod.
var (
	createSmall = tale{name: "create 1+1", act: creates(small), unsettled: settledCluster}
	createThree = tale{name: "create 3+3", act: creates(three), unsettled: settledCluster}
	lacking     = tale{
		name: "one that names a ConfigMap which is not there names another one", unsettled: stalledOver("nor-this"),
		act: inTurn(creates(without), awaitsStalled, edits(func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.ConfigMapInfo.ConfigMapName = "nor-this" })),
	}
	imageChange = tale{
		name: "image change of 3+3", setup: creates(three), unsettled: runs("3.0.5"), replaced: 1,
		act: edits(func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Image, dc.Spec.BeSpec.Image = "apache/doris:fe-3.0.5", "apache/doris:be-3.0.5"
		}),
	}
	imageChangeSmall = tale{
		name: "image change of 1+1", setup: creates(one), unsettled: runs("3.0.5"), replaced: 1,
		act: edits(func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Image, dc.Spec.BeSpec.Image = "apache/doris:fe-3.0.5", "apache/doris:be-3.0.5"
		}),
	}
	badImage = tale{
		name: "bad image of 3+3, mended when the roll has stopped", setup: creates(three), unsettled: runs("3.0.6"),
		act: inTurn(breaksImage, edits(func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Image, dc.Spec.BeSpec.Image = "apache/doris:fe-3.0.6", "apache/doris:be-3.0.6"
		})),
		replaced: 2, // the one that fails; the others once
	}
	rolledBack = tale{
		name: "bad image of 3+3, rolled back and mended", setup: creates(three), unsettled: runs("3.0.6"),
		act: inTurn(edits(func(dc *dorisv1.DorisCluster) {
			dc.Spec.Rollout = &dorisv1.Rollout{OnFailure: dorisv1.OnFailureRollback}
		}), breaksImage, awaitsRollback, edits(func(dc *dorisv1.DorisCluster) {
			dc.Spec.BeSpec.Image, dc.Spec.FeSpec.Image = "apache/doris:be-3.0.6", "apache/doris:fe-3.0.6"
		})),
		replaced: 3, // the one that fails, back and on; the others once
	}
	deletedSet = tale{
		name: "the set of a roll that has stopped is deleted, and the spec mended", setup: creates(three), unsettled: runs("3.0.6"),
		act: inTurn(breaksImage, deletesSet, edits(func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Image, dc.Spec.BeSpec.Image = "apache/doris:fe-3.0.6", "apache/doris:be-3.0.6"
		})),
		replaced: 2,
	}
	scaleOut = tale{
		name: "scale-out from 3+3 to 3+5", setup: creates(three), unsettled: settledCluster,
		act: edits(func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = new(int32(5)) }),
	}
	deletion = tale{name: "delete 1+1", setup: creates(small), act: deletes, unsettled: gone, deletes: true}
)

// tales lists all stories.
func tales() []tale {
	return []tale{createSmall, createThree, imageChange, badImage, rolledBack, deletedSet, scaleOut, deletion, takeover, takeoverAndScale, migrated, accepting, configManual, configRestart, upgrading}
}

func creates(manifest string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		for _, u := range story.Documents(manifest) {
			u.SetNamespace(s.namespace)
			if err := s.client.Create(ctx, &u, client.FieldOwner("a-person")); err != nil {
				return err
			}
		}
		return nil
	}
}

// edits changes the spec of the cluster as a person would.
func edits(change func(*dorisv1.DorisCluster)) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			dc, err := s.doris(ctx)
			if err != nil {
				return err
			}
			change(dc)
			return s.client.Update(ctx, dc, client.FieldOwner("a-person"))
		})
	}
}

// breaksImage edits the image of the backends to one that cannot be pulled, and waits
// until the roll has stopped and the template is as it was.
func breaksImage(ctx context.Context, s *scene) error {
	s.nodes.Inject(simnode.Rule{Fault: simnode.FaultImagePull, Namespace: s.namespace, Image: "*broken*"})
	err := edits(func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:broken" })(ctx, s)
	if err != nil {
		return err
	}
	s.op.launch() // it is waited for, also if it was killed before the act
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		set := &appsv1.StatefulSet{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "doris-be"}, set); err != nil {
			return false, err
		}
		return set.Annotations[meta.AnnotationFailed] != "" && set.Spec.Template.Spec.Containers[0].Image == "apache/doris:be-2.1.8", nil
	})
}

// awaitsRollback waits until every backend runs what ran before.
func awaitsRollback(ctx context.Context, s *scene) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := s.client.List(ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels{dorisv1.LabelComponent: "be"}); err != nil {
			return false, err
		}
		ready := 0
		for i := range pods.Items {
			for _, c := range pods.Items[i].Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods.Items[i].Spec.Containers[0].Image == "apache/doris:be-2.1.8" {
					ready++
				}
			}
		}
		return ready == 3, nil
	})
}

// deletesSet deletes the set of the backends and not its Pods, when the resource
// repeats what is remembered of it, and waits until there is another one.
func deletesSet(ctx context.Context, s *scene) error {
	key := client.ObjectKey{Namespace: s.namespace, Name: "doris-be"}
	var gone types.UID
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		set := &appsv1.StatefulSet{}
		if err := client.IgnoreNotFound(s.client.Get(ctx, key, set)); err != nil {
			return false, err
		}
		if gone != "" {
			return set.UID != "" && set.UID != gone, nil
		}
		dc, err := s.doris(ctx)
		if err != nil || !slices.ContainsFunc(dc.Status.Workloads, func(w dorisv1.WorkloadStatus) bool { return w.Records["failed"] != "" }) {
			return false, err
		}
		gone = set.UID
		return false, s.client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	})
}

func deletes(ctx context.Context, s *scene) error {
	dc, err := s.doris(ctx)
	if err != nil {
		return err
	}
	return s.client.Delete(ctx, dc)
}

func (s *scene) doris(ctx context.Context) (*dorisv1.DorisCluster, error) {
	dc := &dorisv1.DorisCluster{}
	return dc, s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "doris"}, dc)
}

// stalledOver is where a cluster gets that lacks something.
func stalledOver(name string) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		dc, err := s.doris(ctx)
		if err != nil {
			return err.Error()
		}
		if says := story.ConditionText(dc, meta.ConditionStalled); !strings.HasPrefix(says, "True") || !strings.Contains(says, name) {
			return "it is not Stalled over " + name + ": " + says
		}
		return ""
	}
}

// awaitsStalled waits until that is said, and nothing follows.
func awaitsStalled(ctx context.Context, s *scene) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return stalledOver("not-there")(ctx, s) == "" && s.uncalm(calm) == "", nil
	})
}

// settledCluster says what is missing until the cluster is as its spec says,
// and every Pod runs what the template says.
func settledCluster(ctx context.Context, s *scene) string {
	dc, err := s.doris(ctx)
	if err != nil {
		return err.Error()
	}
	if missing := story.Unsettled(dc); missing != "" {
		return missing
	}
	return s.unready(ctx)
}

// unready names a set whose Pods are not all ready and as its template says.
func (s *scene) unready(ctx context.Context) string {
	sets := &appsv1.StatefulSetList{}
	if err := s.client.List(ctx, sets, client.InNamespace(s.namespace)); err != nil {
		return err.Error()
	}
	for _, set := range sets.Items {
		st := set.Status
		switch n := *set.Spec.Replicas; {
		case st.ObservedGeneration != set.Generation:
			return "its controller has not seen " + set.Name
		case st.ReadyReplicas != n || st.Replicas != n || st.UpdatedReplicas != n:
			return "Pods of " + set.Name + " are not ready or not up to date"
		}
	}
	return ""
}

// runs says what is missing until every Pod runs an image of the version.
func runs(version string) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := settledCluster(ctx, s); missing != "" {
			return missing
		}
		pods := &corev1.PodList{}
		if err := s.client.List(ctx, pods, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		for _, p := range pods.Items {
			if image := p.Spec.Containers[0].Image; !strings.HasSuffix(image, version) {
				return p.Name + " runs " + image
			}
		}
		return ""
	}
}

// gone says what is left of the cluster.
func gone(ctx context.Context, s *scene) string {
	var left []string
	for _, list := range []client.ObjectList{
		&dorisv1.DorisClusterList{}, &appsv1.StatefulSetList{}, &appsv1.ControllerRevisionList{}, &corev1.ServiceList{},
		&corev1.PodList{}, &corev1.SecretList{}, &corev1.ConfigMapList{},
	} {
		if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		err := apimeta.EachListItem(list, func(o runtime.Object) error {
			if name := o.(metav1.Object).GetName(); strings.HasPrefix(name, "doris") {
				left = append(left, name)
			}
			return nil
		})
		if err != nil {
			return err.Error()
		}
	}
	return strings.Join(left, " ")
}
