package simnode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The annotations by which another process asks for faults. They are looked
// at whenever the object changes; taking one away ends the fault.
const (
	// AnnotationFault lists faults, separated by commas: on a Pod for that Pod,
	// on a Node for all its Pods, on a claim for that claim.
	AnnotationFault = "simnode.fairlead.dev/fault"
	// AnnotationContainer limits the faults of a Pod, and its restarts, to
	// containers of that name ("*" stands for any run of characters).
	AnnotationContainer = "simnode.fairlead.dev/container"
	// AnnotationExitCode is the exit code of crashes and asked restarts.
	AnnotationExitCode = "simnode.fairlead.dev/exit-code"
	// AnnotationText is the last text of a crash, or the error of a pull.
	AnnotationText = "simnode.fairlead.dev/text"
	// AnnotationFailImages lists, on a Node, patterns of images whose pull fails.
	AnnotationFailImages = "simnode.fairlead.dev/fail-images"
	// AnnotationRestart restarts a Pod's containers once, each time its value
	// changes.
	AnnotationRestart = "simnode.fairlead.dev/restart"
	// AnnotationStart overrides Options.Start for a Pod: see ParseDelay.
	AnnotationStart = "simnode.fairlead.dev/start"
	// AnnotationReady overrides Options.Ready for a Pod, also for containers
	// without probes.
	AnnotationReady = "simnode.fairlead.dev/ready"
	// AnnotationRun lets a Pod's containers exit with code 0 after that delay.
	AnnotationRun = "simnode.fairlead.dev/run"
)

// rulesOfObject reads the faults asked for by annotations on a Pod or a claim.
// What cannot be read is named in the error; the rest counts.
func rulesOfObject(annotations map[string]string) (rules, error) {
	listed, err := parseFaults(annotations[AnnotationFault])
	if len(listed) == 0 {
		return nil, err
	}
	code, codeErr := parseExitCode(annotations[AnnotationExitCode])
	if err == nil {
		err = codeErr
	}
	var found rules
	for _, fault := range listed {
		found = append(found, Rule{
			Fault: fault, Container: annotations[AnnotationContainer],
			ExitCode: code, Text: annotations[AnnotationText],
		})
	}
	return found, err
}

// rulesOfNode reads the faults asked for on a node.
func rulesOfNode(node *corev1.Node) (rules, error) {
	found, err := rulesOfObject(node.Annotations)
	for _, image := range splitList(node.Annotations[AnnotationFailImages]) {
		found = append(found, Rule{Fault: FaultImagePull, Image: image, Text: node.Annotations[AnnotationText]})
	}
	for i := range found {
		found[i].Node = node.Name
	}
	return found, err
}

func parseFaults(text string) ([]Fault, error) {
	var found []Fault
	var unknown []string
	for _, name := range splitList(text) {
		if !slices.Contains(knownFaults, Fault(name)) {
			unknown = append(unknown, name)
			continue
		}
		found = append(found, Fault(name))
	}
	if len(unknown) > 0 {
		return found, fmt.Errorf("annotation %s names unknown faults: %s", AnnotationFault, strings.Join(unknown, ", "))
	}
	return found, nil
}

func parseExitCode(text string) (int32, error) {
	if text == "" {
		return 0, nil
	}
	code, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("annotation %s is %q, not a number from 0 to 255", AnnotationExitCode, text)
	}
	return int32(code), nil
}

func splitList(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
