package status

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// printView prints one resource on one screen.
func printView(s screen.Screen, v View, now time.Time, wide bool) {
	head := fmt.Sprintf("%s %s/%s", v.Kind, v.Namespace, v.Name)
	s.Linef("%s%s", s.Painted(screen.Head, head), remarks(v))
	conditions := screen.Table{Indent: "  "}
	for _, c := range v.Conditions {
		conditions.Row(screen.Cell{Text: c.Type}, screen.Cell{Text: string(c.Status), Paint: conditionPaint(c)}, screen.Cell{Text: age(c.LastTransitionTime, now), Paint: screen.Faint}, screen.Cell{Text: c.Reason}, screen.Cell{Text: c.Message})
	}
	s.Print(conditions)
	printComponents(s, v)
	printMembers(s, v, now, wide)
	printChanged(s, v)
	s.Linef("")
	s.Linef("  %s %s", s.Painted(screen.Head, "Plan:"), v.Plan)
	for _, p := range v.Roll {
		s.Linef("    %d. %s (%s)", p.Order, p.Name, p.Effect)
	}
	if v.WaitsFor != "" {
		s.Linef("    now: %s", screen.Clean(v.WaitsFor))
	}
	findings := screen.Table{Indent: "  "}
	for _, f := range v.Findings {
		paint := screen.Mind
		if f.Severity == plan.Refusal {
			paint = screen.Bad
		}
		findings.Row(screen.Cell{Text: string(f.Severity), Paint: paint}, screen.Cell{Text: f.String()})
	}
	s.Print(findings)
	if len(v.HeldSets) > 0 {
		s.Linef("")
		s.Linef("  %s", s.Painted(screen.Head, "Held until approved:"))
	}
	for _, set := range v.HeldSets {
		cliplan.PrintSet(s, set, wide)
		s.Linef("      kubectl fairlead approve %s/%s %s -n %s", kube.ShortKind, v.Name, set.Approve, v.Namespace)
	}
	cliplan.PrintLost(s, v.IfLost)
}

// printChanged tells that settings were changed in running nodes, and that they win over
// what a ConfigMap says.
func printChanged(s screen.Screen, v View) {
	r := v.RuntimeConfig
	if r == nil || r.ChangedSettings == 0 {
		return
	}
	text := fmt.Sprintf("settings %d, nodes %d", r.ChangedSettings, r.ChangedNodes)
	if r.ContradictedSettings > 0 {
		text += fmt.Sprintf(", against a ConfigMap %d", r.ContradictedSettings)
	}
	s.Linef("")
	s.Linef("  %s %s (kubectl fairlead explain %s/%s -n %s)", s.Painted(screen.Head, "Changed at run time:"), text, kube.ShortKind, v.Name, v.Namespace)
}

// remarks are what is to be said of a resource beside its name.
func remarks(v View) string {
	text := ""
	if v.Paused {
		text += "   (paused: the operator writes nothing)"
	}
	if v.Released {
		text += "   (released: the operator hands the workloads back and does nothing more)"
	}
	switch {
	case v.ObservedGeneration == 0:
		text += "   (no operator has seen it yet)"
	case v.ObservedGeneration != v.Generation:
		text += "   (the newest spec has not been seen by the operator yet)"
	}
	return text
}

// conditionPaint is the colour of a condition: some are good when they are true,
// some when they are not.
func conditionPaint(c metav1.Condition) screen.Paint {
	good := c.Status == metav1.ConditionTrue
	switch c.Type {
	case meta.ConditionStalled:
		if good {
			return screen.Bad
		}
		return screen.Good
	case meta.ConditionReconciling, meta.ConditionChangePending, meta.ConditionPlaintextCredential:
		if good {
			return screen.Mind
		}
		return screen.Good
	case meta.ConditionReady, meta.ConditionAvailable:
		if !good {
			return screen.Bad
		}
		return screen.Good
	}
	if !good {
		return screen.Mind
	}
	return screen.Good
}

func printComponents(s screen.Screen, v View) {
	if len(v.Components) == 0 {
		return
	}
	t := screen.Table{Indent: "  "}
	t.Head("COMPONENT", "PHASE", "READY", "WANTED IMAGE", "RENDERING", "MESSAGE")
	for _, c := range v.Components {
		ready := screen.Cell{Text: fmt.Sprintf("%d/%d", c.Ready, c.Wanted), Paint: screen.Good}
		if c.Ready != int(c.Wanted) {
			ready.Paint = screen.Bad
		}
		t.Row(screen.Cell{Text: c.Name}, screen.Cell{Text: c.Phase}, ready, screen.Cell{Text: c.Image}, screen.Cell{Text: c.Rendering}, screen.Cell{Text: c.Message})
	}
	s.Linef("")
	s.Print(t)
}

func printMembers(s screen.Screen, v View, now time.Time, wide bool) {
	if len(v.Members) == 0 {
		return
	}
	t := screen.Table{Indent: "  "}
	titles := []string{"MEMBER", "READY", "STATE", "RESTARTS", "AGE", "TEMPLATE", "IMAGE"}
	if wide {
		titles = append(titles, "NODE")
	}
	t.Head(titles...)
	for _, m := range v.Members {
		ready := screen.Cell{Text: "yes", Paint: screen.Good}
		if !m.Ready {
			ready = screen.Cell{Text: "no", Paint: screen.Bad}
		}
		cells := []screen.Cell{{Text: m.Pod}, ready}
		cells = append(cells, screen.Texts(m.State, strconv.Itoa(int(m.Restarts)), age(m.Created, now), m.Template, m.Image)...)
		if wide {
			cells = append(cells, screen.Cell{Text: m.Node})
		}
		t.Row(cells...)
	}
	s.Linef("")
	s.Print(t)
}

// printList prints several resources, a line each.
func printList(s screen.Screen, list []dorisv1.DorisCluster, now time.Time) {
	t := screen.Table{}
	t.Head("NAMESPACE", "NAME", "READY", "AVAILABLE", "FE", "BE", "HELD", "AGE", "WHY")
	for i := range list {
		dc := &list[i]
		why, held := "", ""
		ready := screen.Cell{}
		for _, c := range dc.Status.Conditions {
			switch c.Type {
			case meta.ConditionReady:
				ready = screen.Cell{Text: string(c.Status), Paint: conditionPaint(c)}
				if c.Status != metav1.ConditionTrue {
					why = c.Reason + ": " + c.Message
				}
			case meta.ConditionChangePending:
				held = "yes"
			}
		}
		t.Row(screen.Cell{Text: dc.Namespace}, screen.Cell{Text: dc.Name}, ready, screen.Cell{Text: condition(dc, meta.ConditionAvailable)},
			screen.Cell{Text: phase(dc.Status.FeStatus)}, screen.Cell{Text: phase(dc.Status.BeStatus)}, screen.Cell{Text: held},
			screen.Cell{Text: age(dc.CreationTimestamp, now)}, screen.Cell{Text: why})
	}
	s.Print(t)
}

func phase(c *dorisv1.ComponentStatus) string {
	if c == nil {
		return ""
	}
	return string(c.ComponentCondition.Phase)
}
