package doris

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// version is a version of Doris, as the tag of an image names it.
type version struct{ major, minor, patch int }

// series are the two-digit versions that there are: an upgrade takes one after another.
var series = [][2]int{{0, 15}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {4, 0}, {4, 1}}

var versionInTag = regexp.MustCompile(`(?:^|[^0-9.])(\d)\.(\d{1,2})(?:\.(\d{1,4}))?(?:[^0-9.]|$)`)

// tagOf is the tag of an image; empty where it has none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image[strings.LastIndexByte(image, '/')+1:], "@")
	_, tag, _ := strings.Cut(image, ":")
	return tag
}

// versionOf reads the version in the tag of an image, such as fe-3.0.5 or 2.1.7-rc01.
func versionOf(image string) (version, bool) {
	return versionIn(tagOf(image))
}

// versionIn reads the version in a text, such as the one that a node says of itself.
func versionIn(text string) (version, bool) {
	found := versionInTag.FindStringSubmatch(text)
	if found == nil {
		return version{}, false
	}
	var v version
	v.major, _ = strconv.Atoi(found[1])
	v.minor, _ = strconv.Atoi(found[2])
	v.patch, _ = strconv.Atoi(found[3])
	return v, true
}

func (v version) series() [2]int { return [2]int{v.major, v.minor} }

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch) }

func (v version) compare(o version) int {
	return slices.Compare([]int{v.major, v.minor, v.patch}, []int{o.major, o.minor, o.patch})
}

// older tells whether a version is of an earlier series than another.
func (v version) older(o version) bool {
	return v.major < o.major || v.major == o.major && v.minor < o.minor
}

// skipped names the series between two versions that an upgrade would leave out;
// empty when there is none, or nobody can tell.
func skipped(from, to version) string {
	i, j := slices.Index(series, from.series()), slices.Index(series, to.series())
	switch {
	case i >= 0 && j > i+1:
		return fmt.Sprintf("%d.%d", series[i+1][0], series[i+1][1])
	case i >= 0 && j >= 0:
		return ""
	case to.major == from.major && to.minor > from.minor+1:
		return fmt.Sprintf("%d.%d", from.major, from.minor+1)
	case to.major > from.major+1:
		return fmt.Sprintf("%d.0", from.major+1)
	}
	return ""
}

// versioned are the components whose version counts.
var versioned = []dorisv1.ComponentType{dorisv1.ComponentFE, dorisv1.ComponentBE, dorisv1.ComponentCN}

// versionSteps refuses edits of images that Doris cannot follow: back to an earlier
// series, and over one that may not be left out. Tags that name no version are let
// through.
func (p planner) versionSteps() []plan.Finding {
	var out []plan.Finding
	for _, kind := range versioned {
		set, spec := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)], specOf(p.dc, kind)
		if set == nil || spec == nil || !pinned(set) {
			continue
		}
		main := mainImage(set.Spec.Template.Spec, kind)
		if spec.Image == "" || spec.Image == main {
			continue // nobody asks for another one
		}
		if f := p.versionStep(kind, spec.Image, set); f != nil {
			out = append(out, *f)
		}
	}
	return out
}

func (p planner) versionStep(kind dorisv1.ComponentType, image string, set *appsv1.StatefulSet) *plan.Finding {
	field := fieldOf(kind) + ".image"
	to, known := versionOf(image)
	lowest, highest, runs := p.versionsOf(kind)
	if !known || !runs {
		if _, was := versionOf(mainImage(set.Spec.Template.Spec, kind)); was != known {
			return &plan.Finding{Severity: plan.Warning, Field: field, Reason: reasonVersionUnknown, Message: "the tag of the image that is there, or of the one that is asked for, names no version: whether Doris can take this step nobody looked at"}
		}
		return nil
	}
	refused := plan.Finding{Severity: plan.Refusal, Field: field, Reason: meta.ReasonUnsafeChange}
	switch left := skipped(lowest, to); {
	case to.older(highest) && !meta.Allowed(p.dc.Annotations, meta.AllowDowngrade):
		refused.Message = fmt.Sprintf("%s run version %s, and Doris goes back within %d.%d alone: %s may not read what was written. Put the image back; if you know that it can be done, set the annotation %s=%s",
			pluralOf(kind), highest, highest.major, highest.minor, to, meta.AnnotationAllow, meta.AllowDowngrade)
	case left != "" && !to.older(highest) && !meta.Allowed(p.dc.Annotations, meta.AllowVersionSkip):
		refused.Message = fmt.Sprintf("from version %s to %s leaves %s out: Doris is upgraded one minor version after another. Upgrade to %s first; if you know that it can be left out, set the annotation %s=%s",
			lowest, to, left, left, meta.AnnotationAllow, meta.AllowVersionSkip)
	default:
		return nil
	}
	return &refused
}

// reasonVersionUnknown says that the tag of an image names no version.
const reasonVersionUnknown = "VersionUnknown"

// versionsOf are the lowest version of the Pods of a component, and the highest of
// those that serve: one that never came up has written nothing.
func (p planner) versionsOf(kind dorisv1.ComponentType) (lowest, highest version, known bool) {
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		v, ok := versionOf(mainImage(pods[i].Spec, kind))
		if !ok {
			continue
		}
		if !known || v.compare(lowest) < 0 {
			lowest = v
		}
		if ready(&pods[i]) && v.compare(highest) > 0 {
			highest = v
		}
		known = true
	}
	return lowest, highest, known
}

// mainImage is the image of the process of a component in a Pod.
func mainImage(pod corev1.PodSpec, kind dorisv1.ComponentType) string {
	if c := containerOf(pod.Containers, string(kind)); c != nil {
		return c.Image
	}
	return ""
}
