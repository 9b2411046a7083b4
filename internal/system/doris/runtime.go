package doris

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// keepers are the components whose settings outlive their Pods. Compute nodes and
// brokers are not among them.
var keepers = []dorisv1.ComponentType{dorisv1.ComponentFE, dorisv1.ComponentBE}

// envConfDir names the directory in which the entrypoints look for configuration.
const envConfDir = "CONFIGMAP_MOUNT_PATH"

// keepSettings adds to a rendered set what keeps the settings of its Pods.
func (c component) keepSettings(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	r := c.in.Runtime[c.kind]
	if r == nil || !slices.Contains(keepers, c.kind) {
		return set
	}
	pod := &set.Spec.Template.Spec
	r.Apply(pod, runtimeconfig.Options{
		Kind: runtimeconfig.Kind(c.kind), Container: string(c.kind), ConfDir: confDir(pod, string(c.kind)), Root: rootPath,
		// The entrypoint turns names on in a file that it may write, whatever it says.
		// Frontends that know each other by addresses would not find each other any more.
		Fixed: c.kind == dorisv1.ComponentFE && !c.fqdn,
	})
	set.Annotations[runtimeconfig.AnnotationStorage] = r.Annotation()
	return set
}

// confDir is where the entrypoint of a container looks for configuration files.
func confDir(pod *corev1.PodSpec, container string) string {
	if c := containerOf(pod.Containers, container); c != nil {
		for _, e := range c.Env {
			if e.Name == envConfDir && path.IsAbs(e.Value) {
				return path.Clean(e.Value)
			}
		}
	}
	return defaultMountPath
}

// runtimes decides where each component keeps the settings that are changed at run
// time, under the policy of the cluster, which it notes on the resource.
func (p planner) runtimes(objects Objects, contents map[dorisv1.ComponentType]content) (map[dorisv1.ComponentType]*runtimeconfig.Record, runtimeconfig.Policy, []plan.Finding) {
	had := p.runtimesAsTheyAre()
	ruling := runtimeconfig.Rule(runtimeconfig.Cluster{
		Recorded: p.dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy], Annotation: dorisv1.AnnotationRuntimeConfigPolicy,
		Existed: p.existed(), Keeps: keeps(had), Enabled: runtimeEnabled(p.dc), Copies: p.policyCopies(),
	})
	approved, said := p.approval(ruling.Policy, had)
	said = slices.Concat(ruling.Findings, said)
	out := map[dorisv1.ComponentType]*runtimeconfig.Record{}
	for _, kind := range keepers {
		built, there := objects.Component(kind)
		if !there || len(objects.MissingFor(kind)) > 0 && !p.exists(kind) {
			continue // what it mounts is not known yet
		}
		c := p.runtimeOf(built, had[kind], contents[kind])
		c.Migrated, c.Copied = approved.Migrated(c.Kind), approved.Components[c.Kind]
		record, findings := ruling.Policy.Decide(c)
		said = slices.Concat(said, findings, p.copiesStay(kind, record))
		if record != nil {
			out[kind] = record
		}
	}
	p.recordPolicy(ruling.Record)
	return out, ruling.Policy, said
}

// policyCopies are the policies that the sets have noted, in the order of components.
func (p planner) policyCopies() []runtimeconfig.Policy {
	var out []runtimeconfig.Policy
	for _, kind := range keepers {
		if set := p.remembers(kind); set != nil && set.Annotations[dorisv1.AnnotationRuntimeConfigPolicy] != "" {
			out = append(out, runtimeconfig.Policy(set.Annotations[dorisv1.AnnotationRuntimeConfigPolicy]))
		}
	}
	return out
}

// copyPolicy notes on a set under which policy it is, for people and for the case that
// the record on the resource is another one some day. A set that is kept as it was
// found gets none: nothing of it is applied.
func (p planner) copyPolicy(kind dorisv1.ComponentType, target *appsv1.StatefulSet) {
	if slices.Contains(keepers, kind) && p.policy != "" {
		target.Annotations[dorisv1.AnnotationRuntimeConfigPolicy] = string(p.policy)
	}
}

func runtimeEnabled(dc *dorisv1.DorisCluster) *bool {
	if dc.Spec.RuntimeConfigPersistence == nil {
		return nil
	}
	return dc.Spec.RuntimeConfigPersistence.Enabled
}

func keeps(records map[dorisv1.ComponentType]*runtimeconfig.Record) bool {
	for _, kind := range keepers {
		if r := records[kind]; r != nil && r.State == runtimeconfig.Kept {
			return true
		}
	}
	return false
}

// existed tells whether the cluster has workloads or is known to have had some.
func (p planner) existed() bool {
	return len(p.dc.Status.Workloads) > 0 || slices.ContainsFunc(rendered, p.exists)
}

// exists tells whether the set of a component is there or is to be made again.
func (p planner) exists(kind dorisv1.ComponentType) bool { return p.remembers(kind) != nil }

// runtimesAsTheyAre are the records of the components. One that is lost is read from
// the Pod template.
func (p planner) runtimesAsTheyAre() map[dorisv1.ComponentType]*runtimeconfig.Record {
	out := map[dorisv1.ComponentType]*runtimeconfig.Record{}
	for _, kind := range keepers {
		set := p.remembers(kind)
		if recorded, known := readAccepted(set); known {
			if recorded.Runtime != nil {
				out[kind] = recorded.Runtime
			}
		} else if set != nil {
			if r := runtimeconfig.Found(&set.Spec.Template.Spec, string(kind)); r != nil {
				out[kind] = r
			}
		}
	}
	return out
}

// runtimeOf is what is decided by for a component.
func (p planner) runtimeOf(built Component, had *runtimeconfig.Record, has content) runtimeconfig.Component {
	kind := built.Type
	claims := make([]string, 0, len(built.StatefulSet.Spec.VolumeClaimTemplates))
	for i := range built.StatefulSet.Spec.VolumeClaimTemplates {
		claims = append(claims, built.StatefulSet.Spec.VolumeClaimTemplates[i].Name)
	}
	c := runtimeconfig.Component{
		Kind: runtimeconfig.Kind(kind), Name: string(kind), Field: fieldOf(kind), Exists: p.exists(kind), Record: had,
		Mounts: runtimeconfig.MountsOf(&built.StatefulSet.Spec.Template.Spec, string(kind), claims),
	}
	mounted := maps.Clone(p.world.ConfigMaps)
	maps.Copy(mounted, has.maps)
	if kind == dorisv1.ComponentFE {
		frontendPlaces(&c, newConfReader(specOf(p.dc, kind), c.Field, frontendConfKey, frontendHome, mounted))
	} else {
		backendPlaces(&c, newConfReader(specOf(p.dc, kind), c.Field, backendConfKey, backendHome, mounted))
	}
	return c
}

func frontendPlaces(c *runtimeconfig.Component, r *confReader) {
	c.DataDirs = []string{r.path("meta_dir", frontendHome+"/doris-meta")}
	commonPlaces(c, r, frontendHome)
}

func backendPlaces(c *runtimeconfig.Component, r *confReader) {
	c.DataDirs = r.storageRoots("storage_root_path", backendHome+"/storage")
	c.Caches = r.caches()
	commonPlaces(c, r, backendHome)
}

// commonPlaces reads where a node logs, and which directory its configuration names
// for changed settings. What is wrong with other values is said elsewhere.
func commonPlaces(c *runtimeconfig.Component, r *confReader, home string) {
	c.Default = home + "/conf"
	c.Custom = conf.Unquote(r.text(c.Kind.Setting(), ""))
	c.LogDir = home + "/log"
	for _, key := range []string{"LOG_DIR", "sys_log_dir"} {
		if dir := strings.ReplaceAll(conf.Unquote(r.text(key, "")), "$DORIS_HOME", home); path.IsAbs(dir) {
			c.LogDir = path.Clean(dir)
			return
		}
	}
}

// caches are the directories of the file cache of a backend. Where they cannot be
// read, no directory is safe.
func (r *confReader) caches() []string {
	text := r.text("file_cache_path", "")
	if text == "" {
		if on, err := r.file.Bool("enable_file_cache", false); on || err != nil {
			return []string{backendHome + "/file_cache"}
		}
		return nil
	}
	var list []struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(text), &list) != nil {
		return []string{"/"}
	}
	var paths []string
	for _, entry := range list {
		if entry.Path == "memory" { // a cache without a directory
			continue
		}
		dir := strings.ReplaceAll(entry.Path, "$DORIS_HOME", backendHome)
		if !path.IsAbs(dir) {
			return []string{"/"}
		}
		paths = append(paths, path.Clean(dir))
	}
	return paths
}

// recordPolicy notes the policy on the resource, where it is kept from then on.
func (p planner) recordPolicy(policy runtimeconfig.Policy) {
	if policy == "" {
		return
	}
	key := dorisv1.AnnotationRuntimeConfigPolicy
	p.write(note{
		on: p.dc, key: key, is: string(policy), from: p.dc.Annotations[key], to: string(policy), cause: plan.CauseUser,
		reason:  "note that the policy for settings changed at run time is " + string(policy),
		message: "how settings that are changed at run time are kept in this cluster",
	})
}

// ConditionRuntimeConfigKept is there, and False, while settings that are changed at run
// time go with the Pods of a component although the policy is to keep them.
const ConditionRuntimeConfigKept = "RuntimeConfigurationKept"

// keptCondition names the components that had no safe volume when they were made.
func (p planner) keptCondition(extra map[string]status.Verdict) {
	switch runtimeconfig.Policy(p.dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy]) {
	case runtimeconfig.Automatic, runtimeconfig.Enabled:
	default:
		return
	}
	var parts []string
	for _, kind := range keepers {
		if r := p.runtimesAsTheyAre()[kind]; r != nil && r.State == runtimeconfig.Unavailable {
			parts = append(parts, string(kind))
		}
	}
	if len(parts) == 0 {
		return
	}
	extra[ConditionRuntimeConfigKept] = status.Verdict{
		Reason: runtimeconfig.ReasonStorageUnavailable, Tell: true,
		Message: "settings that are changed in running Pods of " + strings.Join(parts, " and ") + " are lost with them: no volume was safe for them when they were made, and one that is added later is not used by itself",
	}
}

// reportRuntime says in the status which components keep their settings.
func (p planner) reportRuntime() *dorisv1.RuntimeConfigStatus {
	out := dorisv1.RuntimeConfigStatus{Policy: p.dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy]}
	for kind, r := range p.runtimesAsTheyAre() {
		switch r.State {
		case runtimeconfig.Kept:
			out.Kept = append(out.Kept, kind)
		case runtimeconfig.Unavailable:
			out.NotKept = append(out.NotKept, kind)
		case runtimeconfig.UserManaged:
		}
	}
	p.reportOverrides(&out)
	if len(out.Kept)+len(out.NotKept) == 0 && out.ChangedSettings == 0 {
		return nil
	}
	slices.Sort(out.Kept)
	slices.Sort(out.NotKept)
	return &out
}
