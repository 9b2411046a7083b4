package doris

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// TranslateRefusal says in fields of the DorisCluster what the API server said of
// an object that was rendered for it and applied. It is the net below Validate,
// for rules that only some versions of Kubernetes have. It returns nothing for
// an error that is about no field: a quota, an admission webhook, a lost
// connection.
//
// Indexes in the answer count in the object as the API server has it, which may
// hold entries of others: an index is trusted only where the object that was
// applied has such an entry.
func TranslateRefusal(dc *dorisv1.DorisCluster, applied client.Object, err error) []plan.Finding {
	origin, ours := originOf(dc, applied)
	if !ours {
		return nil
	}
	var findings []plan.Finding
	for _, cause := range causesOf(err) {
		field, found := origin.field(cause.Field)
		message := fmt.Sprintf("Kubernetes refuses it (%s): mend it, or leave it out", cause.Message)
		if !found {
			message = fmt.Sprintf("Kubernetes refuses what %s %s says in %s (%s): change what leads to it in %s", origin.kind, applied.GetName(), cause.Field, cause.Message, field)
		}
		f := plan.Finding{Severity: plan.Refusal, Field: field, Reason: meta.ReasonInvalidSpec, Message: message}
		if !slices.Contains(findings, f) {
			findings = append(findings, f)
		}
	}
	return findings
}

// causesOf returns what an answer of the API server says of single fields.
func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	var causes []metav1.StatusCause
	if details := status.Status().Details; details != nil {
		for _, c := range details.Causes {
			if c.Field != "" && c.Type != metav1.CauseTypeFieldManagerConflict {
				causes = append(causes, c)
			}
		}
	}
	if len(causes) > 0 {
		return causes
	}
	// What cannot even be merged is told in a sentence that holds the path:
	// "failed to create typed patch object (ns/name; apps/v1, Kind=StatefulSet):
	// .spec.template.spec.hostAliases: duplicate entries for key [ip="10.0.0.1"]".
	message := status.Status().Message
	if !strings.HasPrefix(message, "failed to create typed patch object") {
		return nil
	}
	_, rest, found := strings.Cut(message, "): .")
	if !found {
		return nil
	}
	field, reason, found := strings.Cut(rest, ": ")
	if !found {
		return nil
	}
	return []metav1.StatusCause{{Field: field, Message: reason}}
}

// origin is where a rendered object comes from.
type origin struct {
	dc   *dorisv1.DorisCluster
	kind string
	// at is the field of the component, whose spec may be nil for an object that
	// belongs to none.
	at   string
	spec *dorisv1.BaseSpec
	set  *appsv1.StatefulSet
	svc  *corev1.Service
}

func originOf(dc *dorisv1.DorisCluster, applied client.Object) (origin, bool) {
	o := origin{dc: dc, at: "spec", kind: applied.GetObjectKind().GroupVersionKind().Kind}
	switch {
	case as(applied, "StatefulSet", &o.set):
		o.kind = "StatefulSet"
	case as(applied, "Service", &o.svc):
		o.kind = "Service"
	}
	for _, c := range rendered {
		names := []string{StatefulSetName(dc.Name, c), InternalServiceName(dc.Name, c), AccessServiceName(dc.Name, c)}
		if spec := specOf(dc, c); spec != nil && slices.Contains(names, applied.GetName()) {
			o.at, o.spec = "spec."+string(c)+"Spec", spec
			return o, true
		}
	}
	if applied.GetName() == AutoscalerName(dc.Name) && dc.Spec.CnSpec != nil {
		o.at, o.spec, o.kind = "spec.cnSpec", &dc.Spec.CnSpec.BaseSpec, kindAutoscaler
		return o, true
	}
	own := []string{AdminSecretName(dc.Name), BootstrapConfigMapName(dc.Name)}
	return o, slices.Contains(own, applied.GetName())
}

// as makes a typed object of one that may be unstructured.
func as[T any](object client.Object, kind string, into **T) bool {
	if typed, ok := any(object).(*T); ok {
		*into = typed
		return true
	}
	u, ok := object.(runtime.Unstructured)
	if !ok || object.GetObjectKind().GroupVersionKind().Kind != kind {
		return false
	}
	typed := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.UnstructuredContent(), typed) != nil {
		return false
	}
	*into = typed
	return true
}

// field translates a path. Where it cannot, it returns the component.
func (o origin) field(at string) (field string, found bool) {
	at = strings.TrimPrefix(at, ".")
	switch {
	case at == "metadata.name", at == "spec.serviceName", strings.HasPrefix(at, "metadata.labels"), strings.HasPrefix(at, "spec.selector"):
		return "metadata.name", true // names and selectors are made from it
	case o.spec == nil:
		return "spec", false
	case o.set != nil:
		field, found = o.setField(at)
	case o.svc != nil:
		field, found = o.serviceField(at)
	case o.kind == kindAutoscaler:
		field, found = policyField(at), true
	}
	if !found {
		return o.at, false
	}
	return o.at + field, true
}

func (o origin) setField(at string) (string, bool) {
	if at == "spec.replicas" {
		return ".replicas", true
	}
	if rest, ok := strings.CutPrefix(at, "spec.volumeClaimTemplates"); ok {
		return o.claimField(rest)
	}
	at, ok := strings.CutPrefix(at, "spec.template.")
	if !ok {
		return "", false
	}
	at = strings.TrimPrefix(at, "metadata.")
	if rest, ok := beneath(at, "labels"); ok {
		return ".podLabels" + rest, true
	}
	if rest, ok := beneath(at, "annotations"); ok {
		// Some of their faults are named by a dot where others have brackets.
		if name, dotted := strings.CutPrefix(rest, "."); dotted {
			rest = "[" + name + "]"
		}
		return ".annotations" + rest, true
	}
	at, ok = strings.CutPrefix(at, "spec.")
	if !ok {
		return "", false
	}
	return o.podField(at)
}

// beneath returns what follows a field, where at is that field or lies in it.
func beneath(at, field string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(at, field)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// entry splits "[3].name" into 3 and ".name".
func entry(at string) (index int, rest string, ok bool) {
	text, rest, closed := strings.Cut(strings.TrimPrefix(at, "["), "]")
	index, err := strconv.Atoi(text)
	return index, rest, closed && err == nil && strings.HasPrefix(at, "[")
}

// element returns the entry of a list that a path names.
func element[T any](list []T, at string) (element *T, rest string) {
	i, rest, ok := entry(at)
	if !ok || i < 0 || i >= len(list) {
		return nil, ""
	}
	return &list[i], rest
}
