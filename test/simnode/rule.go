package simnode

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Fault is something that goes wrong on request.
type Fault string

// The faults of Pods.
const (
	// FaultImagePull lets pulls fail: ErrImagePull, then ImagePullBackOff.
	FaultImagePull Fault = "image-pull"
	// FaultCrashLoop lets containers exit as soon as they start.
	FaultCrashLoop Fault = "crash-loop"
	// FaultNeverReady keeps running containers from being ready.
	FaultNeverReady Fault = "never-ready"
	// FaultResizeRefused answers resizes with Infeasible.
	FaultResizeRefused Fault = "resize-refused"
	// FaultResizeDeferred answers resizes with Deferred.
	FaultResizeDeferred Fault = "resize-deferred"
	// FaultDeleteHangs keeps deleted Pods terminating.
	FaultDeleteHangs Fault = "delete-hangs"
	// FaultEvicted fails Pods as a kubelet short of memory does.
	FaultEvicted Fault = "evicted"
	// FaultFrozen leaves Pods as they are, whatever is asked, as a node does
	// that lost its network.
	FaultFrozen Fault = "frozen"
)

// The faults of claims.
const (
	// FaultProvisionHangs leaves claims without a volume.
	FaultProvisionHangs Fault = "provision-hangs"
	// FaultGrowthFails refuses a larger request: ControllerResizeError.
	FaultGrowthFails Fault = "growth-fails"
	// FaultGrowthHangs leaves growth at Resizing.
	FaultGrowthHangs Fault = "growth-hangs"
	// FaultGrowthOffline leaves growth at FileSystemResizePending until a Pod
	// that uses the claim starts.
	FaultGrowthOffline Fault = "growth-offline"
)

var knownFaults = []Fault{
	FaultImagePull, FaultCrashLoop, FaultNeverReady, FaultResizeRefused, FaultResizeDeferred,
	FaultDeleteHangs, FaultEvicted, FaultFrozen,
	FaultProvisionHangs, FaultGrowthFails, FaultGrowthHangs, FaultGrowthOffline,
}

// Rule asks for one fault. The empty pattern matches everything; in the
// others "*" stands for any run of characters, also "/".
type Rule struct {
	// Fault is what goes wrong.
	Fault Fault
	// Namespace, Name (of the Pod or the claim) and Node choose the objects.
	Namespace, Name, Node string
	// Container chooses containers. If it is empty, crash-loop and never-ready
	// mean those that are not init containers.
	Container string
	// Image chooses containers by their image.
	Image string
	// ExitCode is a crashing container's; 1 if zero.
	ExitCode int32
	// Text is what a crashing container said last, or the pull's error.
	Text string
}

// rules are those that concern one object, first match first.
type rules []Rule

// forObject picks the rules that concern one object.
func (r rules) forObject(namespace, name, node string) rules {
	var picked rules
	for _, rule := range r {
		if matches(rule.Namespace, namespace) && matches(rule.Name, name) && matches(rule.Node, node) {
			picked = append(picked, rule)
		}
	}
	return picked
}

func (r rules) has(fault Fault) bool {
	return slices.ContainsFunc(r, func(rule Rule) bool { return rule.Fault == fault })
}

func (r rules) find(fault Fault) (Rule, bool) {
	i := slices.IndexFunc(r, func(rule Rule) bool { return rule.Fault == fault })
	if i < 0 {
		return Rule{}, false
	}
	return r[i], true
}

// forContainer finds the first rule with that fault for a container.
func (r rules) forContainer(fault Fault, c *corev1.Container, kind containerKind) (Rule, bool) {
	for _, rule := range r {
		if rule.Fault != fault || !matches(rule.Container, c.Name) || !matches(rule.Image, c.Image) {
			continue
		}
		if kind == initContainer && rule.Container == "" && fault != FaultImagePull {
			continue
		}
		return rule, true
	}
	return Rule{}, false
}

// matches reports whether text fits the pattern.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, last)
}
