package migrate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// What review and status print as JSON or YAML. Fields are added to it, and none is taken
// away or given another meaning.

// backedUp is a backup.
type backedUp struct {
	Directory string    `json:"directory"`
	ID        string    `json:"id"`
	Taken     time.Time `json:"taken"`
}

// reviewed is what review says.
type reviewed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Kept tells that there is nothing to migrate: the rest is empty then.
	Kept     bool              `json:"kept"`
	Backup   *backedUp         `json:"backup,omitempty"`
	Settings []reviewedSetting `json:"settings"`
	// WithoutFile are the Pods in which nothing was changed so that it is kept.
	WithoutFile []string      `json:"withoutFile"`
	Copies      []plannedCopy `json:"copies"`
	// Blocked is what keeps migrate from its work.
	Blocked []plan.Finding `json:"blocked"`
}

// reviewedSetting is a setting in the file of a Pod. Its value is nowhere.
type reviewedSetting struct {
	Component string `json:"component"`
	Pod       string `json:"pod"`
	Setting   string `json:"setting"`
	// ConfigMap is how it stands to the ConfigMap: absent, same or other.
	ConfigMap string `json:"configMap"`

	note string
}

// plannedCopy is what migrate would do of a component.
type plannedCopy struct {
	Component string `json:"component"`
	Pods      int    `json:"pods"`
	Volume    string `json:"volume"`
	// Directory is where the directories of the Pods will be, as their containers see it now.
	Directory string `json:"directory"`
}

// stood is what status says.
type stood struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Policy    string         `json:"policy"`
	Migration stoodMigration `json:"migration"`
	Backup    *backedUp      `json:"backup,omitempty"`
	Pods      []stoodPod     `json:"pods"`
	// Refused is what the operator refuses of the spec.
	Refused []plan.Finding `json:"refused"`
}

// stoodMigration is how far a migration is.
type stoodMigration struct {
	ID string `json:"id,omitempty"`
	// State is none, unreadable, approved, underWay or done.
	State string `json:"state"`

	says string
}

// stoodPod is how the settings of a Pod stand.
type stoodPod struct {
	Component string `json:"component"`
	Pod       string `json:"pod"`
	// State is notBackedUp, backedUp, beingCopied, copied, kept, changed, lost, cutShort or
	// unknown.
	State string `json:"state"`
	Note  string `json:"note,omitempty"`

	standing standing
}

// outputFlag adds -o to a verb.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json or yaml; default: what people need on one screen")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

func checkOutput(output string) error {
	switch output {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output is %q; write json or yaml", output)
}

func (r *run) madeOf(b *backup) *backedUp {
	if b == nil {
		return nil
	}
	return &backedUp{Directory: r.dir, ID: b.ID, Taken: b.Taken}
}

// reviewedOf is what there is to say of a backup, but for what blocks it.
func (r *run) reviewedOf(b *backup) reviewed {
	dc := r.subject.Cluster
	v := reviewed{
		Namespace: dc.Namespace, Name: dc.Name, Kept: !r.migration.Open(), Backup: r.madeOf(b),
		Settings: []reviewedSetting{}, WithoutFile: []string{}, Copies: []plannedCopy{}, Blocked: []plan.Finding{},
	}
	if b == nil {
		return v
	}
	standings := map[string]string{doris.SettingAlone: "absent", doris.SettingRepeats: "same", doris.SettingContradicts: "other"}
	for _, s := range b.Members {
		c := r.component(s.Component)
		switch {
		case s.File == "":
			v.WithoutFile = append(v.WithoutFile, s.Pod)
			continue
		case c == nil:
			continue
		}
		settings := c.Settings(b.files[s.Pod])
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			v.Settings = append(v.Settings, reviewedSetting{Component: s.Component, Pod: s.Pod, Setting: key, ConfigMap: standings[settings[key]], note: settings[key]})
		}
	}
	for _, c := range r.migration.Components {
		if c.Kept || c.Record == nil {
			continue
		}
		v.Copies = append(v.Copies, plannedCopy{Component: string(c.Kind), Pods: len(c.Pods), Volume: c.Record.Volume, Directory: path.Join(c.Record.MountPath, runtimeconfig.OnVolume)})
	}
	return v
}

// printReviewed prints what there is to say, but for what blocks it.
func (r *run) printReviewed(b *backup, v reviewed) {
	r.out.Linef("Backup of %s, of %s:", r.called(), b.Taken.Format("2006-01-02 15:04:05 MST"))
	t := screen.Table{Indent: "  "}
	t.Head("POD", "SETTING", "NOTE")
	for _, s := range b.Members {
		of := func(is reviewedSetting) bool { return is.Pod == s.Pod }
		switch {
		case s.File == "":
			t.Row(screen.Texts(s.Pod, "", "has no file: nothing was changed in it so that it is kept")...)
		case r.component(s.Component) != nil && !slices.ContainsFunc(v.Settings, of):
			t.Row(screen.Texts(s.Pod, "", "its file names no setting")...)
		}
		for _, is := range v.Settings {
			if of(is) {
				t.Row(screen.Texts(is.Pod, is.Setting, is.note)...)
			}
		}
	}
	r.out.Print(t)
	r.out.Linef("\nmigrate would:")
	for _, c := range v.Copies {
		r.out.Linef("  copy the settings of %s of %s to volume %s: %s", screen.Many(c.Pods, "Pod"), c.Component, c.Volume, path.Join(c.Directory, "<pod>"))
	}
	r.out.Linef("  read each copy back, approve, and have the operator replace the Pods one by one")
	r.out.Linef("")
}
