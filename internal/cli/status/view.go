package status

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// View is how one resource is; it is what -o prints.
type View struct {
	Kind               string             `json:"kind"`
	Namespace          string             `json:"namespace"`
	Name               string             `json:"name"`
	Generation         int64              `json:"generation"`
	ObservedGeneration int64              `json:"observedGeneration"`
	Released           bool               `json:"released,omitempty"`
	Paused             bool               `json:"paused,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Components         []Component        `json:"components,omitempty"`
	Members            []Member           `json:"members,omitempty"`
	// Plan says in one line what is pending; Roll are the Pods that are replaced
	// now or later, and WaitsFor what that waits for.
	Plan     string         `json:"plan"`
	Roll     []cliplan.Pod  `json:"roll,omitempty"`
	WaitsFor string         `json:"waitsFor,omitempty"`
	HeldSets []plan.Held    `json:"heldSets,omitempty"`
	Findings []plan.Finding `json:"findings,omitempty"`
	IfLost   []cliplan.Lost `json:"ifLost,omitempty"`
	// RuntimeConfig tells of settings that were changed in running nodes.
	RuntimeConfig *dorisv1.RuntimeConfigStatus `json:"runtimeConfig,omitempty"`
}

// Component is how one component is.
type Component struct {
	Name    string `json:"name"`
	Phase   string `json:"phase,omitempty"`
	Wanted  int32  `json:"wanted"`
	Ready   int    `json:"ready"`
	Image   string `json:"image,omitempty"`
	Message string `json:"message,omitempty"`
	// Rendering is the revision of the operator's rendering that its set uses: 0
	// for one that another operator made, empty when that is not known.
	Rendering string `json:"rendering,omitempty"`
}

// Member is one Pod.
type Member struct {
	Pod      string      `json:"pod"`
	State    string      `json:"state"`
	Ready    bool        `json:"ready"`
	Restarts int32       `json:"restarts"`
	Image    string      `json:"image,omitempty"`
	Node     string      `json:"node,omitempty"`
	Template string      `json:"template"`
	Created  metav1.Time `json:"created"`
}

// viewOf sums a resource up.
func viewOf(s *cliplan.Subject, r cliplan.Result) View {
	dc := s.Cluster
	v := View{
		Kind: dorisv1.Kind, Namespace: dc.Namespace, Name: dc.Name, Generation: dc.Generation,
		ObservedGeneration: dc.Status.ObservedGeneration, Paused: meta.Paused(dc.Annotations), Released: meta.Released(dc.Annotations), Conditions: dc.Status.Conditions,
		Plan: r.Summary, HeldSets: r.Sets, Findings: r.Findings, IfLost: r.IfLost, RuntimeConfig: dc.Status.RuntimeConfig,
	}
	for _, p := range r.Pods {
		if p.Order > 0 {
			v.Roll = append(v.Roll, p)
		}
	}
	if waits := r.Waits(); len(waits) > 0 {
		v.WaitsFor = waits[0].Message
	}
	behind := map[string]bool{}
	for _, l := range s.Behind() {
		behind[l.Pod] = true
	}
	for _, c := range doris.Components() {
		pods, spec := s.World.Pods[string(c)], doris.SpecOf(dc, c)
		if spec == nil && len(pods) == 0 {
			continue
		}
		v.Components = append(v.Components, componentOf(s.World, dc.Name, c, spec, doris.StatusOf(dc, c)))
		for i := range pods {
			v.Members = append(v.Members, memberOf(&pods[i], string(c), behind[pods[i].Name]))
		}
	}
	return v
}

func componentOf(w doris.World, cluster string, kind dorisv1.ComponentType, spec *dorisv1.BaseSpec, status *dorisv1.ComponentStatus) Component {
	c := Component{Name: string(kind)}
	if status != nil {
		c.Phase, c.Message = string(status.ComponentCondition.Phase), status.ComponentCondition.Message
	}
	if spec != nil {
		c.Image = spec.Image
	}
	if set := w.StatefulSets[doris.StatefulSetName(cluster, kind)]; set != nil {
		c.Wanted, c.Rendering = ptr.Deref(set.Spec.Replicas, 1), set.Annotations[meta.AnnotationRevision]
	}
	pods := w.Pods[string(kind)]
	for i := range pods {
		if cliplan.Ready(&pods[i]) {
			c.Ready++
		}
	}
	return c
}

func memberOf(p *corev1.Pod, container string, behind bool) Member {
	m := Member{Pod: p.Name, Ready: cliplan.Ready(p), State: string(p.Status.Phase), Node: p.Spec.NodeName, Template: "newest", Created: p.CreationTimestamp}
	if behind {
		m.Template = "older"
	}
	for _, c := range p.Spec.Containers {
		if c.Name == container {
			m.Image = c.Image
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		m.Restarts += c.RestartCount
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if w := c.State.Waiting; w != nil && w.Reason != "" {
				m.State = w.Reason
			}
		}
	}
	if p.DeletionTimestamp != nil {
		m.State = "Terminating"
	}
	return m
}

// condition says a condition in a few words.
func condition(dc *dorisv1.DorisCluster, kind string) string {
	for _, c := range dc.Status.Conditions {
		if c.Type == kind {
			return string(c.Status)
		}
	}
	return ""
}

// line is a view in one line, which changes only when there is news.
func (v View) line() string {
	parts := []string{v.Namespace + "/" + v.Name}
	for _, c := range v.Conditions {
		switch c.Type {
		case meta.ConditionReady:
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("Ready=%s %s: %s", c.Status, c.Reason, c.Message)))
		case meta.ConditionStalled, meta.ConditionChangePending:
			parts = append(parts, fmt.Sprintf("%s (%s)", c.Type, c.Reason))
		}
	}
	for _, c := range v.Components {
		part := fmt.Sprintf("%s %d/%d ready", c.Name, c.Ready, c.Wanted)
		older := 0
		for _, m := range v.Members {
			if m.Template == "older" && strings.HasPrefix(m.Pod, v.Name+"-"+c.Name+"-") {
				older++
			}
		}
		if older > 0 {
			part += fmt.Sprintf(", %d on an older template", older)
		}
		parts = append(parts, part)
	}
	for _, set := range v.HeldSets {
		parts = append(parts, "held "+set.Approve)
	}
	if v.Paused {
		parts = append(parts, "paused")
	}
	if v.Generation != v.ObservedGeneration {
		parts = append(parts, "the operator has not seen the newest spec yet")
	}
	return strings.Join(parts, " | ")
}

func age(since metav1.Time, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(since.Time))
}
