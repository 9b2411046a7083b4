package runtimeconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/build"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Kind is the kind of a node, which decides its files.
type Kind string

// The kinds of nodes that have settings which can be changed while they run.
const (
	Frontend Kind = "fe"
	Backend  Kind = "be"
	Meta     Kind = "ms"
)

// State says what is recorded of a component.
type State string

// The states. A component that exists without a record never kept its settings.
const (
	// Kept settings lie on the volume that the record names.
	Kept State = "kept"
	// Unavailable means that there was no safe volume when the component was made.
	// It stays so: a volume that is added later finds settings already in force.
	Unavailable State = "unavailable"
	// UserManaged means that the configuration names a directory on a volume itself.
	UserManaged State = "user-managed"
)

// Record is what was chosen for a component when it was made. It stays with the
// component and is never chosen anew.
type Record struct {
	State State `json:"state"`
	// Volume, MountPath and SubPath are those of the mount that was chosen.
	Volume    string `json:"volume,omitempty"`
	MountPath string `json:"mountPath,omitempty"`
	SubPath   string `json:"subPath,omitempty"`
	// Migrated says that settings of the first members were copied there before: the id
	// of the migration and the number of members. Those must find their copy.
	Migrated string `json:"migrated,omitempty"`
}

// AnnotationStorage on a workload repeats its record for people and scripts.
const AnnotationStorage = "doris.apache.org/runtime-config-storage"

// Annotation is the value of AnnotationStorage.
func (r *Record) Annotation() string {
	if r.State != Kept {
		return string(r.State)
	}
	text, err := json.Marshal(struct {
		Volume    string `json:"volume"`
		MountPath string `json:"mountPath"`
		SubPath   string `json:"subPath,omitempty"`
	}{r.Volume, r.MountPath, r.SubPath})
	if err != nil {
		panic(fmt.Sprintf("record of storage: %v", err)) // strings can be encoded
	}
	return string(text)
}

// Mount is a mount of the main container of a Pod.
type Mount struct {
	Volume, Path, SubPath, SubPathExpr string
	// Claim tells that the volume is a claim, which outlives the Pod.
	Claim    bool
	ReadOnly bool
}

// Component is what is known of a component when it is decided what becomes of its
// settings.
type Component struct {
	Kind Kind
	// Name is the component in the words of its resource, and Field its field.
	Name, Field string
	// Exists tells that its workload is there, or is to be made again.
	Exists bool
	// Record is what was chosen for it; nil where nothing was.
	Record *Record
	// Mounts are those of its main container.
	Mounts []Mount
	// LogDir is where it logs; DataDirs where a frontend has its metadata and a
	// backend its data; Caches the directories of its file cache, which may be
	// cleared as a whole.
	LogDir   string
	DataDirs []string
	Caches   []string
	// Custom is the place that its base file names for the settings, as an absolute
	// path (a file for Meta), and Default that of the image. Both may be empty.
	Custom, Default string
	// Migrated is what its record is to say of a migration that a person has approved, and
	// Copied where that has put its settings. Empty where there is none.
	Migrated string
	Copied   Copied
}

// Decide says what becomes of the settings of a component under a policy. A nil
// record means that nothing is done for them.
func (p Policy) Decide(c Component) (*Record, []plan.Finding) {
	switch {
	case c.Record != nil && c.Record.State == Kept:
		return c.Record, c.stillThere()
	case c.Record != nil && c.Record.State == UserManaged:
		return c.Record, nil
	case c.Exists && p == Enabled && c.Migrated != "":
		return c.migrated()
	case c.Exists && p == Enabled:
		return c.Record, []plan.Finding{refusal(FieldEnabled, ReasonMigrationNeeded, fmt.Sprintf(
			"%s runs already and does not keep its settings; those that are in force now would be lost with its Pods. They have to be copied first, by `kubectl fairlead runtime-config`, which sets the field itself; until then leave it out", c.Name))}
	case c.Exists:
		return c.Record, c.unavailable()
	case p == Automatic, p == Enabled:
		return c.choose(p)
	}
	return nil, nil
}

// stillThere refuses edits by which the settings that are kept would not be found.
func (c Component) stillThere() []plan.Finding {
	if own := c.Custom; own != "" && !c.usual(own) {
		return []plan.Finding{refusal(c.Field+".configMapInfo", ReasonStorageChanged, fmt.Sprintf(
			"the configuration names %s for settings that are changed at run time, and those of %s are kept on volume %s: take the line out again", own, c.Name, c.Record.Volume))}
	}
	if taken := c.at(Directory); taken != "" {
		return []plan.Finding{refusal(c.Field, ReasonStorageChanged, fmt.Sprintf(
			"volume %s is mounted at %s, where the settings of %s are that were changed at run time: mount it elsewhere", taken, Directory, c.Name))}
	}
	for _, m := range c.Mounts {
		if m.Volume == c.Record.Volume && m.Path == c.Record.MountPath && m.SubPath == c.Record.SubPath {
			if why := c.unsafe(m); why != "" {
				return []plan.Finding{refusal(c.Field+".persistentVolumes", ReasonStorageChanged, fmt.Sprintf(
					"the settings of %s that were changed at run time are kept on volume %s, which %s now: put it back as it was", c.Name, m.Volume, why))}
			}
			return nil
		}
	}
	return []plan.Finding{refusal(c.Field+".persistentVolumes", ReasonStorageChanged, fmt.Sprintf(
		"the settings of %s that were changed at run time are kept on volume %s at %s, which is not there any more: put it back as it was", c.Name, c.Record.Volume, c.Record.MountPath))}
}

// usual tells whether a place is that of the image, or ours.
func (c Component) usual(place string) bool {
	place = path.Clean(place)
	return place == Directory || place == Directory+"/"+c.Kind.CustomFile() || c.Default != "" && place == path.Clean(c.Default)
}

// unavailable says again of a component that exists that its settings are not kept.
func (c Component) unavailable() []plan.Finding {
	if c.Record == nil || c.Record.State != Unavailable {
		return nil
	}
	return []plan.Finding{{
		Severity: plan.Warning, Field: c.Field + ".persistentVolumes", Reason: ReasonStorageUnavailable,
		Message: fmt.Sprintf("settings that are changed in a running %s are lost with its Pod: there was no volume that is safe for them when it was made, and one that is added later is not used by itself", c.Name),
	}}
}

// choose decides for a component that is made for the first time.
func (c Component) choose(p Policy) (*Record, []plan.Finding) {
	taken := c.at(Directory)
	if c.Custom != "" && (!c.usual(c.Custom) || taken != "" && path.Clean(c.Custom) != path.Clean(c.Default)) {
		return c.managed()
	}
	record, why := c.pick()
	if record != nil {
		return record, nil
	}
	if p == Enabled {
		return nil, []plan.Finding{c.noVolume(why)}
	}
	return &Record{State: Unavailable}, []plan.Finding{{
		Severity: plan.Warning, Field: c.Field + ".persistentVolumes", Reason: ReasonStorageUnavailable,
		Message: c.wouldBeLost(why) + ". A volume that is added after the first start is not used by itself",
	}}
}

// noVolume refuses to keep the settings of a component that has no volume for them.
func (c Component) noVolume(why []string) plan.Finding {
	return refusal(FieldEnabled, ReasonStorageUnavailable, c.wouldBeLost(why)+". Add a volume with a claim for its logs to "+c.Field+".persistentVolumes, or leave the field out")
}

func (c Component) wouldBeLost(why []string) string {
	return fmt.Sprintf("settings that are changed in a running %s would be lost with its Pod, since no volume is safe for them: %s", c.Name, strings.Join(why, "; "))
}

// managed looks at a place that the configuration names itself.
func (c Component) managed() (*Record, []plan.Finding) {
	dir := path.Clean(c.Custom)
	if c.Kind == Meta {
		dir = path.Dir(dir)
	}
	mount, found := c.covering(dir)
	cached := ""
	for _, cache := range c.Caches {
		if build.Within(cache, dir) {
			cached = cache
		}
	}
	switch {
	case !found:
		return nil, c.notDurable("no volume holds it")
	case !mount.Claim:
		return nil, c.notDurable("volume " + mount.Volume + " there is no claim")
	case mount.ReadOnly:
		return nil, c.notDurable("volume " + mount.Volume + " there is read-only")
	case cached != "":
		return nil, c.notDurable("it lies in the file cache " + cached + ", which may be cleared as a whole")
	}
	return &Record{State: UserManaged}, nil
}

func (c Component) notDurable(why string) []plan.Finding {
	return []plan.Finding{refusal(c.Field+".configMapInfo", ReasonPathNotDurable, fmt.Sprintf(
		"the configuration names %s for settings that are changed at run time, and they would be lost with the Pod (%s): take the line out, name a directory on a claim, or set %s to false", c.Custom, why, FieldEnabled))}
}

// pick chooses the mount: that of the logs, of the metadata, of the data.
func (c Component) pick() (*Record, []string) {
	type place struct{ what, dir string }
	places := []place{{"logs", c.LogDir}}
	for _, dir := range c.DataDirs {
		if c.Kind == Frontend {
			places = append(places, place{"metadata", dir})
		} else {
			places = append(places, place{"data", dir})
		}
	}
	if taken := c.at(Directory); taken != "" {
		return nil, []string{"volume " + taken + " is mounted at " + Directory + ", where they would be: mount it elsewhere, or name this directory in the configuration"}
	}
	var why []string
	for _, p := range places {
		if p.dir == "" {
			continue
		}
		mount, found := c.covering(p.dir)
		if !found {
			why = append(why, fmt.Sprintf("no volume holds the %s in %s", p.what, p.dir))
			continue
		}
		if unsafe := c.unsafe(mount); unsafe != "" {
			why = append(why, fmt.Sprintf("that of the %s in %s %s", p.what, p.dir, unsafe))
			continue
		}
		return &Record{State: Kept, Volume: mount.Volume, MountPath: mount.Path, SubPath: mount.SubPath}, nil
	}
	if len(why) == 0 {
		why = []string{"it has none"}
	}
	return nil, why
}

// unsafe says why a mount is not used.
func (c Component) unsafe(m Mount) string {
	switch {
	case !m.Claim:
		return "goes with the Pod"
	case m.ReadOnly:
		return "is read-only"
	case m.SubPathExpr != "":
		return "has a subPathExpr"
	}
	for _, cache := range c.Caches {
		if build.Within(cache, m.Path) || build.Within(m.Path, cache) {
			return "overlaps the file cache " + cache + ", which may be cleared as a whole"
		}
	}
	return ""
}

// at returns the volume that is mounted at a path.
func (c Component) at(place string) string {
	for _, m := range c.Mounts {
		if path.Clean(m.Path) == place {
			return m.Volume
		}
	}
	return ""
}

// covering returns the mount that holds a directory.
func (c Component) covering(dir string) (best Mount, found bool) {
	for _, m := range c.Mounts {
		if build.Within(m.Path, dir) && (!found || len(path.Clean(m.Path)) > len(path.Clean(best.Path))) {
			best, found = m, true
		}
	}
	return best, found
}

// BaseFile is the configuration file that people write.
func (k Kind) BaseFile() string {
	if k == Meta {
		return "doris_cloud.conf"
	}
	return string(k) + ".conf"
}

// CustomFile is the file that a node keeps its changed settings in.
func (k Kind) CustomFile() string { return string(k) + "_custom.conf" }

// Setting is the name of the setting that names the place of the custom file.
func (k Kind) Setting() string {
	if k == Meta {
		return "custom_conf_path"
	}
	return "custom_config_dir"
}

// place is the value of that setting.
func (k Kind) place() string {
	if k == Meta {
		return path.Join(Directory, k.CustomFile())
	}
	return Directory
}

// home is the directory of the kind below the root of the image.
func (k Kind) home(root string) string {
	return path.Join(cmp.Or(root, "/opt/apache-doris"), string(k))
}
