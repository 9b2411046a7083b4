package history

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
)

var update = flag.Bool("update", false, "write the golden files")

func TestHistoryIsPrinted(t *testing.T) {
	began := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	at := func(minutes int) metav1.Time { return metav1.NewTime(began.Add(time.Duration(minutes) * time.Minute)) }
	dc := &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "analytics", Name: "doris"}}
	dc.Status.History = []dorisv1.RollRecord{
		{Component: "be", Began: at(90), Outcome: dorisv1.RollUnderWay, Cause: "user", Effect: "resize, else restart-pod", By: []string{"kubectl-edit"}, Changes: []string{"beSpec.limits.memory: 4Gi -> 8Gi"}},
		{
			Component: "be", Began: at(60), Ended: new(at(62)), Outcome: dorisv1.RollStopped, Cause: "user", Effect: "restart-pod", By: []string{"argocd-controller"}, Pods: 3,
			Changes: []string{"beSpec.image: apache/doris:be-2.1.8 -> apache/doris:be-broken", "beSpec.envVars"}, Message: "doris-be-2 did not come up (be: ImagePullBackOff)",
		},
		{Component: "fe", Began: at(0), Ended: new(at(7)), Outcome: dorisv1.RollDone, Cause: "revision", Effect: "restart-pod", By: []string{"kubectl-fairlead (approved)"}, Pods: 3, Changes: []string{"rendering 0 -> 1"}},
	}
	for _, tc := range []struct {
		golden, output string
		of             *dorisv1.DorisCluster
	}{
		{"short.txt", "", dc},
		{"wide.txt", "wide", dc},
		{"one.yaml", "yaml", dc},
		{"nothing.txt", "", &dorisv1.DorisCluster{ObjectMeta: dc.ObjectMeta}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			out := &bytes.Buffer{}
			o := &options{IOStreams: genericiooptions.IOStreams{Out: out}, output: tc.output, now: func() time.Time { return began.Add(2 * time.Hour) }}
			if err := o.print(screen.New(out, func(string) string { return "" }), []View{viewOf(tc.of)}); err != nil {
				t.Fatal(err)
			}
			path := "testdata/" + tc.golden
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
