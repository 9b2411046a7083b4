// Package admission holds what the API server itself checks of a DorisCluster, as
// CEL rules of its custom resource definition. The operator checks the same when
// it reconciles, and more, since admission can be off and CEL cannot say
// everything.
//
// A rule never makes a resource unwritable that exists already and breaks it.
// Newer API servers leave unchanged fields alone by themselves; Kubernetes 1.29
// does not, not even when a status is written. So each rule is written twice:
// once for resources that have no status yet, which are new ones, and once for
// edits, where it refuses only what keeps the rule before and breaks it after.
package admission

import "strings"

// Rule is one thing that the API server checks.
type Rule struct {
	// Name is that of the rule of the reconcile that says the same.
	Name string
	// Field is what is wrong where the rule does not hold, such as
	// spec.feSpec.replicas.
	Field string
	// Message says why, and what to do instead.
	Message string
	// Holds is a CEL expression over SELF, the whole resource.
	Holds string
	// OnEdit tells that it also speaks of OLD, the resource before an edit, so that
	// there is nothing to check of a new one.
	OnEdit bool
}

// Validation is one entry of x-kubernetes-validations at the root of the schema.
type Validation struct {
	Rule      string `json:"rule"`
	Message   string `json:"message"`
	Reason    string `json:"reason,omitempty"`
	FieldPath string `json:"fieldPath,omitempty"`
}

// Validations are the entries of all rules, in a fixed order.
func Validations() []Validation {
	var out []Validation
	for _, r := range Rules() {
		for _, rule := range r.expressions() {
			v := Validation{Rule: rule, Message: r.Field + ": " + r.Message, Reason: "FieldValueInvalid"}
			if strings.HasPrefix(r.Field, "spec.") { // the schema knows nothing below metadata
				v.FieldPath = "." + r.Field
			}
			out = append(out, v)
		}
	}
	return out
}

// expressions are the rule for what is new, and for edits.
func (r Rule) expressions() []string {
	over := func(self, old string) string {
		return "(" + strings.NewReplacer("SELF", self, "OLD", old).Replace(r.Holds) + ")"
	}
	if r.OnEdit {
		return []string{over("self", "oldSelf")}
	}
	fresh := "has(self.status) || " + over("self", "")
	if strings.HasPrefix(r.Field, "metadata.") { // a name does not change
		return []string{fresh}
	}
	return []string{fresh, over("self", "") + " || !" + over("oldSelf", "")}
}

// components are the fields of the spec that hold a component each.
var components = []string{"feSpec", "beSpec", "cnSpec", "brokerSpec"}

// Rules returns what is checked, in a fixed order.
func Rules() []Rule {
	rules := []Rule{
		{
			Name: "NameFits", Field: "metadata.name",
			Message: "it is the start of the names of Services and Pods: use at most 49 lower case letters, digits and dashes",
			Holds:   `SELF.metadata.name.size() <= 49 && SELF.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,
		},
		{
			Name: "AdminUserCanRegister", Field: "spec.adminUser.name",
			Message: "the account admin is built into Doris and cannot register members: choose another name, or use root",
			Holds: `!has(SELF.spec) || !has(SELF.spec.adminUser) || !has(SELF.spec.adminUser.name) || SELF.spec.adminUser.name.lowerAscii() != 'admin'` +
				` || (has(SELF.spec.authSecret) && SELF.spec.authSecret != '')`,
		},
		{
			Name: "FollowersCanElect", Field: "spec.feSpec.electionNumber",
			Message: "fewer than one frontend cannot elect a master: set it to an odd number from 1 on, or leave it out for 3",
			Holds:   `!has(SELF.spec) || !has(SELF.spec.feSpec) || !has(SELF.spec.feSpec.electionNumber) || SELF.spec.feSpec.electionNumber >= 1`,
		},
	}
	rules = append(rules, Rule{
		Name: "ImageGiven", Field: "spec.cnSpec.image",
		Message: "no image is named. A cluster without spec.cnSpec has no compute nodes that could be scaled, and kubectl scale is about these alone: write cnSpec with an image to have some, and set the replicas of other components in the spec",
		Holds:   `!has(SELF.spec) || !has(SELF.spec.cnSpec) || (has(SELF.spec.cnSpec.image) && SELF.spec.cnSpec.image != '')`,
	})
	rules = append(rules, noWayBack())
	rules = append(rules, autoscaling()...)
	for _, c := range components {
		rules = append(rules, component(c)...)
	}
	return rules
}

// noWayBack refuses to turn off what keeps settings. Whether some are kept is in the
// status, so the rule speaks of edits by people alone: a status that says so later is
// written whatever the spec asks for.
func noWayBack() Rule {
	const off = `has(X.spec) && has(X.spec.runtimeConfigPersistence) && has(X.spec.runtimeConfigPersistence.enabled) && !X.spec.runtimeConfigPersistence.enabled`
	return Rule{
		Name: "runtimes", Field: "spec.runtimeConfigPersistence.enabled", OnEdit: true,
		Message: "settings that were changed at run time are kept already, and would silently go back to what the ConfigMaps say: set it to true, or leave it out",
		Holds: `!(` + strings.ReplaceAll(off, "X.", "SELF.") + `) || (` + strings.ReplaceAll(off, "X.", "OLD.") + `)` +
			` || !has(SELF.status) || !has(SELF.status.runtimeConfig) || !has(SELF.status.runtimeConfig.kept) || SELF.status.runtimeConfig.kept.size() == 0`,
	}
}

func autoscaling() []Rule {
	const policy = "spec.cnSpec.autoScalingPolicy"
	absent := `!has(SELF.spec) || !has(SELF.spec.cnSpec) || !has(SELF.spec.cnSpec.autoScalingPolicy) || `
	p := "SELF." + policy
	return []Rule{
		{
			Name: "AutoScalingBounds", Field: policy + ".maxReplicas",
			Message: "an autoscaler needs room for at least one Pod, and for minReplicas: set it to minReplicas or more",
			Holds:   absent + p + `.maxReplicas >= 1 && (!has(` + p + `.minReplicas) || ` + p + `.minReplicas <= ` + p + `.maxReplicas)`,
		},
		{
			Name: "AutoScalingBounds", Field: policy + ".minReplicas",
			Message: "an autoscaler keeps at least one Pod: set it to 1 or more, or leave it out",
			Holds:   absent + `!has(` + p + `.minReplicas) || ` + p + `.minReplicas >= 1`,
		},
	}
}

// component returns the rules of one component.
func component(name string) []Rule {
	field, c := "spec."+name, "SELF.spec."+name
	// in makes a rule that is kept where the component lacks the field.
	in := func(has, holds string) string {
		holds = strings.ReplaceAll(holds, "C.", c+".")
		either := []string{`!has(SELF.spec)`, `!has(` + c + `)`}
		parts := strings.Split(has, ".")
		for i := range parts {
			either = append(either, `!has(`+c+"."+strings.Join(parts[:i+1], ".")+`)`)
		}
		return strings.Join(append(either, holds), " || ")
	}
	rules := []Rule{
		{
			Name: "ReplicasNotNegative", Field: field + ".replicas",
			Message: "one component can have at most 1000 Pods: set it to what you mean",
			Holds:   in("replicas", `C.replicas <= 1000`),
		},
		{
			Name: "NodePortsDistinct", Field: field + ".service.servicePorts",
			Message: "a nodePort is no port: use one between 30000 and 32767, or 0 to let Kubernetes choose",
			Holds:   in("service.servicePorts", `C.service.servicePorts.all(p, !has(p.nodePort) || (p.nodePort >= 0 && p.nodePort <= 65535))`),
		},
		{
			Name: "VolumesComplete", Field: field + ".persistentVolumes",
			Message: "two volumes have one name, by which their claims are told apart: give each its own",
			Holds: in("persistentVolumes", `C.persistentVolumes.all(v, !has(v.mountPath) || v.mountPath == '' || !has(v.name)`+
				` || C.persistentVolumes.exists_one(o, has(o.mountPath) && o.mountPath != '' && has(o.name) && o.name == v.name))`),
		},
		{
			Name: "MountPathsDistinct", Field: field + ".persistentVolumes",
			Message: "two volumes are mounted at one path: give each its own",
			Holds: in("persistentVolumes", `C.persistentVolumes.all(v, !has(v.mountPath) || v.mountPath == ''`+
				` || C.persistentVolumes.exists_one(o, has(o.mountPath) && o.mountPath == v.mountPath))`),
		},
		{
			Name: "MountPathsDistinct", Field: field + ".configMapInfo.configMaps",
			Message: "two ConfigMaps are mounted at one path, or one twice (an entry without a path is mounted at /etc/doris): give each its own path",
			Holds: in("configMapInfo.configMaps", `C.configMapInfo.configMaps.all(v, C.configMapInfo.configMaps.exists_one(o,`+
				` (has(o.mountPath) && o.mountPath != '' ? o.mountPath : '/etc/doris') == (has(v.mountPath) && v.mountPath != '' ? v.mountPath : '/etc/doris')))`),
		},
		{
			Name: "MountPathsDistinct", Field: field + ".secrets",
			Message: "two Secrets are mounted at one path, or one twice (an entry without a path is mounted at /etc/doris): give each its own path",
			Holds: in("secrets", `C.secrets.all(v, C.secrets.exists_one(o,`+
				` (has(o.mountPath) && o.mountPath != '' ? o.mountPath : '/etc/doris') == (has(v.mountPath) && v.mountPath != '' ? v.mountPath : '/etc/doris')))`),
		},
		{
			Name: "MountPathsAbsolute", Field: field + ".persistentVolumes",
			Message: "a mount path starts with /, is not / itself and holds no colon: mend it, or leave it out for where the configuration puts the data",
			Holds: in("persistentVolumes", `C.persistentVolumes.all(v, !has(v.mountPath) || v.mountPath == ''`+
				` || (v.mountPath.startsWith('/') && v.mountPath != '/' && !v.mountPath.contains(':')))`),
		},
	}
	return append(rules, onEdit(name)...)
}

// onEdit returns the rules of a component about what must stay. That no disk becomes
// smaller is not among them: quantities of unbounded length are too dear for
// the cost budget of CEL, so the operator alone refuses it.
func onEdit(name string) []Rule {
	field, is, was := "spec."+name, "SELF.spec."+name, "OLD.spec."+name
	both := `!has(SELF.spec) || !has(OLD.spec) || !has(` + is + `) || !has(` + was + `) || !has(` + is + `.persistentVolumes) || !has(` + was + `.persistentVolumes) || `
	maker := func(v string) string { return `(has(` + v + `.provisioner) && ` + v + `.provisioner == 'Operator')` }
	pair := func(breaks string) string {
		return both + was + `.persistentVolumes.all(o, !has(o.name) || !` + is + `.persistentVolumes.exists(n, has(n.name) && n.name == o.name && ` + breaks + `))`
	}
	return []Rule{
		{
			Name: "changesClaims", Field: field + ".persistentVolumes", OnEdit: true,
			Message: "who makes the claims of a volume (provisioner) cannot change while they exist: put it back",
			Holds:   pair(maker("o") + ` != ` + maker("n")),
		},
	}
}
