package plan

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files")

func set(name string) plan.Ref { return plan.Ref{Kind: "StatefulSet", Namespace: "shop", Name: name} }

func pod(name string) plan.Ref { return plan.Ref{Kind: "Pod", Namespace: "shop", Name: name} }

const image = `spec.template.spec.containers[name="be"].image`

// everything has something in every section.
func everything() Result {
	held := plan.Change{
		Object: set("doris-fe"), Path: `spec.template.spec.containers[name="fe"].image`, From: `"fe:1"`, To: `"fe:2"`,
		Cause: plan.CauseUser, Effect: plan.EffectDataLoss, Verdict: plan.VerdictHold, Reason: "UnsafeChange", Message: "the data is gone", Approve: "0123456789ab",
	}
	offer := make([]plan.Change, 0, 9)
	for _, n := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		offer = append(offer, plan.Change{
			Object: set("doris-be"), Path: "spec.template.metadata.labels." + n, To: strings.Repeat("long ", 20) + n,
			Cause: plan.CauseRevision, Effect: plan.EffectRestartPod, Verdict: plan.VerdictHold, Reason: "ConsentNeeded", Message: "revision 1 of the rendering", Approve: "ba9876543210",
		})
	}
	p := plan.Plan{
		Findings: []plan.Finding{
			{Severity: plan.Warning, Field: "spec.adminUser", Reason: "DeprecatedField", Message: "use authSecret"},
			{Severity: plan.Unsupported, Field: "spec.cnSpec", Reason: "NotSupportedYet", Message: "compute nodes are not built"},
		},
		Changes: append([]plan.Change{
			{Object: set("doris-be"), Path: image, From: `"be:1"`, To: `"be:2"`, Cause: plan.CauseUser, Effect: plan.EffectRestartPod, Verdict: plan.VerdictApply},
			{Object: set("doris-be"), Path: `metadata.annotations["fairlead.dev/accepted"]`, Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: "Recorded"},
			{Object: set("doris-be"), Path: "spec.replicas", From: "3", To: "2", Cause: plan.CauseUser, Effect: plan.EffectDataLoss, Verdict: plan.VerdictRefuse, Reason: "NotSupportedYet", Message: "members leave through the database"},
			{Object: set("doris-be"), Path: "spec.serviceName", From: "x", To: "y", Cause: plan.CauseUser, Effect: plan.EffectRecreate, Verdict: plan.VerdictHold, Reason: "Immutable", Message: "cannot change"},
			{Object: plan.Ref{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data-doris-be-2"}, Cause: plan.CauseUser, Effect: plan.EffectDataLoss, Verdict: plan.VerdictWait, Message: "its member is gone"},
			held,
		}, offer...),
	}
	r := Result{
		Kind: "DorisCluster", Namespace: "shop", Name: "doris", Plan: p, Sets: p.HeldSets(), Manifest: true,
		Notes: []string{"it is paused"},
		Pods: []Pod{
			{Order: 1, Name: "doris-be-1", Effect: plan.EffectRestartPod, Cause: plan.CauseUser, Verdict: plan.VerdictWait, Reason: "Outdated", Message: "when its turn comes"},
			{Order: 2, Name: "doris-be-0", Effect: plan.EffectRestartPod, Cause: plan.CauseUser, Verdict: plan.VerdictWait, Reason: "Outdated", Message: "when its turn comes"},
			{Name: "doris-fe-0", Effect: plan.EffectDataLoss, Cause: plan.CauseUser, Verdict: plan.VerdictHold, Reason: "UnsafeChange", Message: "stays"},
		},
		Claims: []plan.Change{p.Changes[4]},
		IfLost: []Lost{{Pod: "doris-fe-1", Has: "doris-fe-1111", Gets: "doris-fe-2222", Images: []string{"fe: fe:1 -> fe:2"}}},
		Next:   []string{"StatefulSet/doris-be: update " + image, "wait: replacing Pods\x1b[31m"},
	}
	for _, p := range r.Pods {
		r.Changes = append(r.Changes, plan.Change{Object: pod(p.Name), Effect: p.Effect, Cause: p.Cause, Verdict: p.Verdict, Reason: p.Reason, Message: p.Message})
	}
	r.Summary = summary(r)
	return r
}

func TestPrint(t *testing.T) {
	refused := everything()
	refused.Findings = append(refused.Findings, plan.Finding{Severity: plan.Refusal, Field: "spec.feSpec.replicas", Reason: "InvalidSpec", Message: "below zero"})
	refused.Changes, refused.Sets, refused.Pods, refused.Claims, refused.IfLost, refused.Next, refused.Notes = nil, nil, nil, nil, nil, nil, nil
	refused.Summary = summary(refused)
	nothing := Result{Kind: "DorisCluster", Namespace: "shop", Name: "doris"}
	nothing.Summary = summary(nothing)
	for _, tc := range []struct {
		name           string
		result         Result
		wide, coloured bool
	}{
		{name: "everything", result: everything()},
		{name: "everything-wide", result: everything(), wide: true},
		{name: "everything-on-a-terminal", result: everything(), coloured: true},
		{name: "refused", result: refused},
		{name: "nothing", result: nothing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			Print(screen.Screen{Writer: &out, Colour: tc.coloured}, tc.result, tc.wide)
			file := filepath.Join("testdata", tc.name+".txt")
			if *update {
				if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if !tc.coloured && strings.Contains(out.String(), "\x1b") {
				t.Error("there is a control character in what is printed")
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	change := func(verdict plan.Verdict, cause plan.Cause, approve string) Result {
		c := plan.Change{Object: set("doris-be"), Path: "spec.x", Cause: cause, Effect: plan.EffectNone, Verdict: verdict, Approve: approve}
		p := plan.Plan{Changes: []plan.Change{c}}
		return Result{Plan: p, Sets: p.HeldSets()}
	}
	refusal := Result{Plan: plan.Plan{Findings: []plan.Finding{{Severity: plan.Refusal}}}}
	applied := change(plan.VerdictApply, plan.CauseUser, "")
	held := change(plan.VerdictHold, plan.CauseRevision, "0123456789ab")
	for _, tc := range []struct {
		name           string
		results        []Result
		without, asked int
	}{
		{"nothing at all", nil, exit.OK, exit.OK},
		{"nothing to do", []Result{{}}, exit.OK, exit.OK},
		{"to apply", []Result{applied}, exit.OK, exit.Changes},
		{"waiting", []Result{change(plan.VerdictWait, plan.CauseUser, "")}, exit.OK, exit.Changes},
		{"held", []Result{held}, exit.OK, exit.Refused},
		{"held, and nobody can approve it", []Result{change(plan.VerdictHold, plan.CauseUser, "")}, exit.OK, exit.Refused},
		{"changed in the running system", []Result{change(plan.VerdictHold, plan.CauseRuntime, "")}, exit.OK, exit.OK},
		{"added by somebody else", []Result{change(plan.VerdictRefuse, plan.CauseDrift, "")}, exit.OK, exit.OK},
		{"a refused change", []Result{change(plan.VerdictRefuse, plan.CauseUser, "")}, exit.Refused, exit.Refused},
		{"refused input", []Result{refusal}, exit.Refused, exit.Refused},
		{"one to apply, another refused", []Result{applied, refusal}, exit.Refused, exit.Refused},
		{"one to apply, another held", []Result{applied, held}, exit.OK, exit.Refused},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for asked, want := range map[bool]int{false: tc.without, true: tc.asked} {
				got, say := exit.Code(status(tc.results, asked))
				if got != want || say {
					t.Errorf("asked for the code %t: %d and said %t, want %d", asked, got, say, want)
				}
			}
		})
	}
}

func TestValidateRefusesWhatMakesNoSense(t *testing.T) {
	for _, tc := range []struct {
		name  string
		o     options
		args  []string
		fails string
	}{
		{name: "nothing", fails: "nothing to plan"},
		{name: "file and name", o: options{files: []string{"x"}}, args: []string{"dcr", "doris"}, fails: "not both"},
		{name: "recursive without a file", o: options{recursive: true}, args: []string{"doris"}, fails: "--recursive is for -f"},
		{name: "unknown output", o: options{output: "xml"}, args: []string{"doris"}, fails: "json, yaml or wide"},
		{name: "a name", args: []string{"doris"}},
		{name: "files", o: options{files: []string{"x", "y"}, recursive: true, output: "wide"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.o.validate(tc.args)
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("error %v, want one that says %q", err, tc.fails)
			}
		})
	}
}

// TestCountOfPlans holds what a plan is said to come to.
func TestCountOfPlans(t *testing.T) {
	waits := plan.Change{Object: set("doris-be"), Path: "spec.replicas", Effect: plan.EffectNone, Verdict: plan.VerdictWait, Reason: "MembersLeaving"}
	statement := plan.Change{Object: pod("doris-be-2"), Path: "membership in the database", Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: "MembersLeaving"}
	record := plan.Change{Object: pod("doris-be-2"), Path: `metadata.annotations["fairlead.dev/leaving"]`, Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: "Recorded"}
	kept := plan.Change{Object: pod("doris-be-1"), Effect: plan.EffectRestartPod, Verdict: plan.VerdictWait, Reason: "MemberFailed"}
	goes := plan.Change{Object: pod("doris-be-0"), Effect: plan.EffectRestartPod, Verdict: plan.VerdictWait, Reason: "Outdated"}
	resized, reloaded := goes, goes
	resized.Object, resized.Effect = pod("doris-be-1"), plan.EffectResizeOrRestart
	reloaded.Object, reloaded.Effect = pod("doris-be-2"), plan.EffectReloadOrRestart
	resizedToo := goes
	resizedToo.Effect = plan.EffectResizeOrRestart
	for _, tc := range []struct {
		name    string
		changes []plan.Change
		want    string
	}{
		{"a Pod that stays where its node can resize it", []plan.Change{resized}, "1 Pod resized in place or else replaced, one at a time"},
		{"one that goes, and others that stay where that can be", []plan.Change{resized, goes, reloaded}, "1 Pod replaced, 1 Pod resized in place or else replaced, 1 Pod told the new settings or else replaced, one at a time"},
		{"one that is resized and has to go all the same", []plan.Change{resizedToo, goes}, "1 Pod replaced, one at a time"},
		{"a number that waits for members to leave", []plan.Change{waits}, "1 change waiting"},
		{"a statement is no replacement", []plan.Change{waits, statement, record}, "1 change of 1 object to apply, 1 change waiting"},
		{"only a record", []plan.Change{record}, "records to bring up to date"},
		{"a Pod that stays to be looked at", []plan.Change{kept}, "nothing to do"},
		{"one that goes beside one that stays", []plan.Change{kept, goes, goes}, "1 Pod replaced, one at a time"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := summary(Result{Plan: plan.Plan{Changes: tc.changes}}); got != tc.want {
				t.Errorf("it is summed up as %q, want %q", got, tc.want)
			}
		})
	}
}
