package doris

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// Before the first frontend gets another version, the master writes all metadata into a
// file on its volume, as Doris asks for: frontends of the new version may write what those
// of the old one cannot read. What it takes is minutes where there are many tablets, so
// that nobody waits for it in a reconcile; and it may be repeated, since the file is named
// after the last change that is in it.

// Dumper has the master write its metadata into a file.
type Dumper interface {
	// Dump returns the path of the file, as the master sees it, and the Pod's host.
	Dump(ctx context.Context, at databaseAddress) (file, host string, err error)
}

// MetadataDump is a file of metadata that the master was asked for.
type MetadataDump struct {
	// For is the revision of the frontends' StatefulSet before which it was asked.
	For string
	// Asking tells that it is being written.
	Asking bool
	// File is where it is, and Pod whose volume it is on; Failed says why it is not there.
	File, Pod, Failed string
	// At is when that was known.
	At time.Time
}

// dumpRecord is what is remembered of it, in the annotation AnnotationMetadataDump.
type dumpRecord struct {
	For  string    `json:"for"`
	Pod  string    `json:"pod"`
	File string    `json:"file"`
	At   time.Time `json:"at"`
}

func readDump(set *appsv1.StatefulSet) (d dumpRecord) {
	if set != nil {
		_ = json.Unmarshal([]byte(set.Annotations[meta.AnnotationMetadataDump]), &d) // nobody's, if it cannot be read
	}
	return d
}

// dumpWaits begins what is said while a roll waits for the file.
const dumpWaits = "the master to write the metadata into a file before frontends get another version"

// dumpAgain is how long is waited after one that failed, and dumpLost when nothing is
// expected any more of one that was asked for.
const (
	dumpAgain = time.Minute
	dumpLost  = 15 * time.Minute
)

// saveMetadata has the metadata written before a frontend that serves gets another
// version. It tells what is still to come.
func (p planner) saveMetadata(r rolling, going string) (first string) {
	db, set := p.world.Database, r.sets[going]
	if r.kinds[going] != dorisv1.ComponentFE || !p.needsDump(set, r.pods[going]) {
		return ""
	}
	if is := db.Dump; is.For == set.Status.UpdateRevision && is.File != "" {
		if !r.busy[set.Name] {
			said := fmt.Sprintf("all metadata is in %s of %s now, before frontends get another version", is.File, is.Pod)
			p.write(note{
				on: set, key: meta.AnnotationMetadataDump, cause: plan.CauseUser, reason: said, message: said,
				is: encoded(dumpRecord{For: is.For, Pod: is.Pod, File: is.File, At: is.At.UTC().Truncate(time.Second)}),
			})
		}
		return dumpWaits
	}
	if why := p.undumped(set); why != "" {
		first = dumpWaits + " (" + why + "). To upgrade without it, set spec.rollout.metadataDump to Never"
		if p.now.Before(db.Dump.At.Add(dumpAgain)) {
			return first
		}
	}
	if db.Dump.Asking && p.now.Before(db.Dump.At.Add(dumpLost)) {
		return dumpWaits
	}
	p.askForDump(set)
	if first == "" {
		first = dumpWaits
	}
	return first
}

// needsDump tells whether a frontend goes for another version, and the metadata is not in
// a file yet.
func (p planner) needsDump(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	db := p.world.Database
	switch {
	case db == nil, !db.Known, p.unheeded(), !ready(pod):
		return false
	case ptr.Deref(p.dc.Spec.Rollout, dorisv1.Rollout{}).MetadataDump == dorisv1.MetadataDumpNever:
		return false
	case tagOf(mainImage(pod.Spec, dorisv1.ComponentFE)) == tagOf(mainImage(set.Spec.Template.Spec, dorisv1.ComponentFE)):
		return false
	}
	return readDump(set).For != set.Status.UpdateRevision
}

// undumped says why the metadata was not written for what a set is rolled to.
func (p planner) undumped(set *appsv1.StatefulSet) string {
	db := p.world.Database
	if db == nil || db.Dump.For != set.Status.UpdateRevision {
		return ""
	}
	return db.Dump.Failed
}

func (p planner) askForDump(set *appsv1.StatefulSet) {
	at, _, _ := p.database()
	o := dumpMetadata{at: at, revision: set.Status.UpdateRevision}
	change := plan.Change{
		Object: plan.RefOf(set), Path: "metadata of the master", To: "a file", Cause: plan.CauseUser, Effect: plan.EffectNone,
		Verdict: plan.VerdictApply, Reason: meta.ReasonProgressing, Message: "the metadata is written into a file before frontends get another version",
	}
	p.build.Step(change, plan.Call{On: change.Object, Operation: o, Reason: o.Describe()})
}

// dumpMetadata has the master write its metadata into a file.
type dumpMetadata struct {
	at       databaseAddress
	revision string
}

// Describe says what is done.
func (o dumpMetadata) Describe() string { return "have the master write all metadata into a file" }

// dumped is the last file that the master of a cluster was asked for.
func (a *asker) dumped(uid types.UID) MetadataDump {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dumps[uid]
}

// dump asks for a file. It waits as long for it as for any answer; the cluster is woken
// when it is there.
func (a *asker) dump(ctx context.Context, o dumpMetadata) error {
	dumper, can := a.nodes.(Dumper)
	if !can {
		return fmt.Errorf("doris cannot be asked to %s", o.Describe())
	}
	cluster := o.at.cluster
	a.keepDump(cluster.UID, MetadataDump{For: o.revision, Asking: true, At: a.now()})
	subject := cluster.UID + "/metadata"
	a.beside.do(ctx, subject, types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}, func(ctx context.Context) {
		file, host, err := dumper.Dump(ctx, o.at)
		a.counted("dump", endOf(err))
		is := MetadataDump{For: o.revision, File: file, At: a.now()}
		if is.Pod, _, _ = strings.Cut(host, "."); err != nil {
			is.Failed = err.Error()
		}
		a.keepDump(cluster.UID, is)
	})
	if is := a.dumped(cluster.UID); is.Failed != "" {
		return &plan.NotDoneError{Reason: is.Failed}
	}
	return nil
}

func (a *asker) keepDump(uid types.UID, is MetadataDump) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dumps[uid] = is
}

// Dump implements Dumper.
func (r reached) Dump(ctx context.Context, at databaseAddress) (file, host string, err error) {
	doris, node, frontends, err := r.master(ctx, at)
	if err != nil {
		return "", "", err
	}
	master := masterWithWeb(frontends)
	if master == nil {
		return "", "", errors.New("the master names no HTTP port")
	}
	file, err = doris.DumpMetadata(ctx, client.Node{Host: node.Host, Port: master.HTTPPort})
	return file, master.Host, err
}
