package runtimeconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Settings of a component that runs without keeping them are copied to its volumes
// before any Pod of it is replaced. A person approves that by an annotation on the
// resource, which says what was copied: of which cluster, of which workloads, of how
// many members. No setting is in it.

// Approval is what a person approves: that the settings of these workloads, as they were
// then, are on their volumes.
type Approval struct {
	Version int `json:"v"`
	// ID names the migration. Each member has a mark with it beside its copy.
	ID string `json:"id"`
	// Cluster is the UID of the resource, and Generation that of its spec before the
	// approval, which asks for settings to be kept and so makes the next one.
	Cluster    string `json:"cluster"`
	Generation int64  `json:"generation"`
	// Components are the workloads.
	Components map[Kind]Copied `json:"components"`
}

// Copied is a workload whose settings were copied.
type Copied struct {
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	// Replicas is how many members it had. Those that come later have nothing to find.
	Replicas int32 `json:"replicas"`
	// Volume, MountPath and SubPath are where the copies are.
	Volume    string `json:"volume"`
	MountPath string `json:"mountPath"`
	SubPath   string `json:"subPath,omitempty"`
}

// approvalVersion is the version of the record.
const approvalVersion = 1

// longestApproval bounds what is read: the largest that is written is far shorter.
const longestApproval = 8 << 10

// idOfMigration is the form of an ID, which becomes part of a file name and of a script's
// variable.
var idOfMigration = regexp.MustCompile(`^[0-9a-f]{8,32}$`)

// ReadApproval reads the annotation.
func ReadApproval(text string) (Approval, error) {
	var a Approval
	if len(text) > longestApproval {
		return a, fmt.Errorf("it is longer than %d bytes", longestApproval)
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return Approval{}, errors.New("it is no JSON of an approval")
	}
	switch {
	case a.Version != approvalVersion:
		return a, fmt.Errorf("it is of version %d, and this one knows %d", a.Version, approvalVersion)
	case !idOfMigration.MatchString(a.ID):
		return a, errors.New("it has no id of a migration")
	}
	for kind, c := range a.Components {
		if c.Replicas < 0 || c.Volume == "" {
			return a, fmt.Errorf("of %s it does not say how many members it has, or on which volume", kind)
		}
	}
	return a, nil
}

// String is the value of the annotation.
func (a Approval) String() string {
	a.Version = approvalVersion
	text, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("approval: %v", err)) // a type of this package can be encoded
	}
	return string(text)
}

// Migrated is what the record of a component says of the migration: its id, and how many
// members have a copy.
func (a Approval) Migrated(kind Kind) string {
	c, copied := a.Components[kind]
	if !copied {
		return ""
	}
	return a.ID + ":" + strconv.Itoa(int(c.Replicas))
}

// Workload is a workload as it is when an approval is looked at.
type Workload struct {
	Kind Kind
	// Name is that of the object; UID is empty where it is gone.
	Name, UID  string
	Generation int64
	Replicas   int32
}

// Check says why an approval does not hold for what is there. Nothing means that it does.
func (a Approval) Check(annotation, cluster string, generation int64, workloads []Workload) []plan.Finding {
	field := fmt.Sprintf("metadata.annotations[%q]", annotation)
	no := func(reason, format string, args ...any) []plan.Finding {
		return []plan.Finding{refusal(field, reason, fmt.Sprintf(format, args...)+": nothing was changed. Take "+FieldEnabled+" out, make a new backup in another directory, and migrate with that")}
	}
	if a.Cluster != cluster {
		return no(ReasonMigrationInvalid, "it approves the migration of another cluster of this name")
	}
	if a.Generation+1 != generation {
		return no(ReasonMigrationOutdated, "the spec was edited since the settings were copied (it is of generation %d, and was of %d with the approval)", generation, a.Generation+1)
	}
	for _, w := range workloads {
		c, copied := a.Components[w.Kind]
		switch {
		case !copied:
			return no(ReasonMigrationOutdated, "the settings of %s were not copied", w.Name)
		case w.UID != c.UID:
			return no(ReasonMigrationOutdated, "%s is another StatefulSet than the one whose settings were copied, or gone", w.Name)
		case w.Replicas != c.Replicas:
			return no(ReasonMigrationOutdated, "%s has %d replicas, and had %d when their settings were copied", w.Name, w.Replicas, c.Replicas)
		case w.Generation != c.Generation:
			return no(ReasonMigrationOutdated, "%s was edited since its settings were copied", w.Name)
		}
	}
	return nil
}

// migrated is the record of a component whose settings were copied before.
func (c Component) migrated() (*Record, []plan.Finding) {
	record, findings := c.Place()
	if len(findings) > 0 {
		return c.Record, findings
	}
	if on := c.Copied; record.Volume != on.Volume || record.MountPath != on.MountPath || record.SubPath != on.SubPath {
		return c.Record, []plan.Finding{refusal(c.Field, ReasonMigrationOutdated, fmt.Sprintf(
			"the settings of %s were copied to volume %s, and volume %s would be used: take %s out, and make a new backup", c.Name, on.Volume, record.Volume, FieldEnabled))}
	}
	record.Migrated = c.Migrated
	return record, nil
}

// Place is where the settings of a component that runs would be kept, if they were copied
// there, or why there is no such place.
func (c Component) Place() (*Record, []plan.Finding) {
	if own := c.Custom; own != "" && path.Clean(own) != path.Clean(c.Default) {
		return nil, []plan.Finding{refusal(c.Field+".configMapInfo", ReasonPathNotDurable, fmt.Sprintf(
			"the configuration of %s names %s for settings that are changed at run time, so they are not where they are copied from: plan this move by hand, or take the line out and set them again", c.Name, own))}
	}
	record, why := c.pick()
	if record == nil {
		return nil, []plan.Finding{c.noVolume(why)}
	}
	return record, nil
}
