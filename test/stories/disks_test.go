package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/simnode"
)

// Disks grow in stories as the simulated nodes, a test double of a CSI driver with its
// resizer, let them.

// operated is three with disks of the backends that the operator looks after.
var operated = strings.Replace(three, "{name: data, ", "{name: data, provisioner: Operator, ", 1)

func (s *scene) diskSize(size string) {
	s.Helper()
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.BeSpec.PersistentVolumes[0].PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	})
}

// haveSize waits until the backends' claims have a size.
func (s *scene) haveSize(size string, n int) {
	s.Helper()
	s.eventually("the claims have "+size, func() string {
		for i := range n {
			claim := &corev1.PersistentVolumeClaim{}
			s.get(fmt.Sprintf("data-doris-be-%d", i), claim)
			if has := claim.Status.Capacity.Storage().String(); has != size {
				return claim.Name + " has " + has
			}
		}
		return ""
	})
}

func (s *scene) samePods(before map[string]string) {
	s.Helper()
	after := s.identities()
	for name := range after {
		if before[name] == "" {
			delete(after, name)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		s.Errorf("Pods are others (-before +after):\n%s", diff)
	}
}

func TestDisksOfTheOperatorGrow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(operated)
	s.settled("doris")
	before := s.identities()
	undo := s.nodes.Inject(simnode.Rule{Fault: simnode.FaultGrowthHangs, Namespace: s.namespace})
	s.diskSize("2Gi")
	s.says("doris", meta.ConditionReconciling, metav1.ConditionTrue, meta.ReasonDiskGrowing, "data-doris-be-", "from 1Gi to 2Gi", "the storage makes the volume larger")
	s.says("doris", meta.ConditionAvailable, metav1.ConditionTrue)
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = new(int32(4)) })
	s.eventually("everything else goes on while disks grow", func() string {
		if len(s.pods("be")) < 4 {
			return "there is no fourth backend"
		}
		return ""
	})
	undo()
	s.haveSize("2Gi", 4)
	s.settled("doris")
	s.samePods(before)
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.BeSpec.PersistentVolumes[0].Annotations = map[string]string{"example.org/backup": "daily"}
	})
	s.eventually("the claims are annotated", func() string {
		claim := &corev1.PersistentVolumeClaim{}
		s.get("data-doris-be-3", claim)
		if claim.Annotations["example.org/backup"] != "daily" {
			return fmt.Sprint(claim.Annotations)
		}
		return ""
	})
	s.settled("doris")
	defer s.nodes.Inject(simnode.Rule{Fault: simnode.FaultGrowthFails, Namespace: s.namespace, Text: "no room left in the pool"})()
	s.diskSize("3Gi")
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, meta.ReasonDiskNotGrown, "no room left in the pool")
	s.samePods(before)
}

func TestDisksOfAClassThatDoesNotGrow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed-" + s.namespace}, Provisioner: simnode.Driver}
	if err := s.client.Create(s.Context(), class); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Delete(t.Context(), class) })
	s.operate()
	s.create(strings.Replace(operated, "provisioner: Operator, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {", "provisioner: Operator, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {storageClassName: "+class.Name+", ", 1))
	s.settled("doris")
	before := s.identities()
	s.diskSize("2Gi")
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, meta.ReasonDiskCannotGrow,
		"spec.beSpec.persistentVolumes[0].persistentVolumeClaimSpec.resources.requests.storage", "allowVolumeExpansion: true", class.Name, "put the size back")
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-3.0.5" })
	s.eventually("a roll goes on all the same", func() string {
		for _, p := range s.pods("be") {
			if before[p.Name] == string(p.UID) {
				return p.Name + " is the old one"
			}
		}
		return ""
	})
	s.quiet(2 * time.Second)
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.BeSpec.PersistentVolumes[0].Name = "data"
	})
}

// TestASetIsMadeAgainForItsDisks has claims made by the StatefulSet, whose Pods run on
// while it is made again.
func TestASetIsMadeAgainForItsDisks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(three)
	s.settled("doris")
	was := &appsv1.StatefulSet{}
	s.get("doris-be", was)
	before := s.identities()
	change(s, "doris-be", &appsv1.StatefulSet{}, func(set *appsv1.StatefulSet) { set.Annotations["example.org/team"] = "shop" })
	s.diskSize("2Gi")
	s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue, "volumeClaimTemplates")
	s.says("doris", meta.ConditionReady, metav1.ConditionTrue)
	mark := s.mark()
	s.quiet(time.Second)
	if n := s.writes(mark); n > 1 {
		t.Errorf("%d writes while it is held; one of the status is enough", n)
	}
	s.approve("doris", s.digest(s.plannedBy(s.present(), "doris"), "StatefulSet/doris-be", plan.CauseUser))
	now := &appsv1.StatefulSet{}
	s.eventually("the set is made again", func() string {
		err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "doris-be"}, now)
		if err != nil || now.UID == was.UID {
			return "it is not"
		}
		return ""
	})
	s.haveSize("2Gi", 3)
	s.settled("doris")
	s.samePods(before)
	s.get("doris-be", now)
	if got := now.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Errorf("claims are to have %s", got)
	}
	if now.Annotations["example.org/team"] != "shop" || now.Annotations[meta.AnnotationAccepted] != was.Annotations[meta.AnnotationAccepted] {
		t.Errorf("annotations are %v", now.Annotations)
	}
	if diff := cmp.Diff(was.Spec.Template, now.Spec.Template); diff != "" {
		t.Errorf("the template is another one: %s", diff)
	}
	if now.Status.UpdateRevision != was.Status.UpdateRevision {
		t.Errorf("the revision was %s and is %s", was.Status.UpdateRevision, now.Status.UpdateRevision)
	}
	for _, o := range s.list(&corev1.ConfigMapList{}) {
		if strings.HasSuffix(o.GetName(), "-made-again") {
			t.Errorf("ConfigMap %s is still there", o.GetName())
		}
	}
	s.approve("doris")
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = new(int32(4)) })
	s.haveSizeOnce("2Gi", "data-doris-be-3")
	s.settled("doris")
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-3.0.5" })
	s.settled("doris")
}

func (s *scene) haveSizeOnce(size, name string) {
	s.Helper()
	s.eventually(name+" has "+size, func() string {
		claim := &corev1.PersistentVolumeClaim{}
		if err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, claim); err != nil {
			return err.Error()
		}
		if asked := claim.Spec.Resources.Requests.Storage().String(); asked != size {
			s.Fatalf("%s asks for %s", name, asked)
		}
		return ""
	})
}
