package doris

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/test/dorissim/local"
)

// running are a frontend and a backend of the stand-in for Doris, which is a test
// double, and the secrets of a namespace.
type running struct {
	*local.Cluster
	secrets map[string]map[string][]byte
	reads   int
	asker   *asker
	dc      *dorisv1.DorisCluster
}

func startRunning(t *testing.T) *running {
	t.Helper()
	r := &running{
		Cluster: &local.Cluster{Dir: t.TempDir(), Version: "4.1.3", Pace: local.FastPace, Log: slog.New(slog.DiscardHandler)},
		secrets: map[string]map[string][]byte{},
		dc:      &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "doris"}},
	}
	t.Cleanup(func() {
		if err := r.StopAll(); err != nil {
			t.Logf("a node ended with: %v", err)
		}
	})
	ctx := context.WithoutCancel(t.Context())
	fe, err := r.NewFE("")
	fatal(t, err)
	fatal(t, fe.Start(ctx, ""))
	be, err := r.NewBE("")
	fatal(t, err)
	fatal(t, be.Start(ctx))
	r.asker = newAsker(NewNodes(nil, func(_ context.Context, namespace, name string) (map[string][]byte, error) {
		r.reads++
		return r.secrets[namespace+"/"+name], nil
	}), time.Now)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, errFE := r.asker.nodes.Settings(t.Context(), r.fe())
		_, errBE := r.asker.nodes.Settings(t.Context(), r.be())
		if errFE == nil && errBE == nil {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("the nodes do not answer: %v, %v", errFE, errBE)
		}
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *running) fe() nodeAddress {
	f := r.FEs[0]
	return nodeAddress{cluster: r.dc, kind: dorisv1.ComponentFE, pod: "doris-fe-0", uid: "fe", host: "127.0.0.1", query: int32(f.QueryPort), http: int32(f.HTTPPort)}
}

func (r *running) be() nodeAddress {
	return nodeAddress{cluster: r.dc, kind: dorisv1.ComponentBE, pod: "doris-be-0", uid: "be", host: "127.0.0.1", http: int32(r.BEs[0].HTTPPort)}
}

// says is what a node reports of a setting.
func (r *running) says(t *testing.T, at nodeAddress, key string) string {
	t.Helper()
	items, err := r.asker.nodes.Settings(t.Context(), at)
	fatal(t, err)
	item, found := setting.Find(items, key)
	if !found {
		t.Fatalf("%s has no setting %s", at.pod, key)
	}
	return item.Value
}

// TestExecute carries operations out on running nodes.
func TestExecute(t *testing.T) {
	t.Parallel()
	r := startRunning(t)
	system := &System{asker: r.asker}
	for _, tc := range []struct {
		name    string
		at      nodeAddress
		changes []setting.Change
		want    map[string]string
		notDone string
	}{
		{"a backend's settings", r.be(), []setting.Change{{Key: "max_tablet_version_num", Value: "4711"}, {Key: "sys_log_level", Value: "WARNING"}}, map[string]string{"max_tablet_version_num": "4711", "sys_log_level": "WARNING"}, ""},
		{"a frontend's settings", r.fe(), []setting.Change{{Key: "qe_slow_log_ms", Value: "4711"}}, map[string]string{"qe_slow_log_ms": "4711"}, ""},
		{"a setting of the master", r.fe(), []setting.Change{{Key: "disable_balance", Value: "true", MasterOnly: true}}, map[string]string{"disable_balance": "true"}, ""},
		{"a setting that cannot be changed: the others are", r.be(), []setting.Change{{Key: "be_port", Value: "4711"}, {Key: "sys_log_level", Value: "ERROR"}}, map[string]string{"be_port": fmt.Sprint(r.BEs[0].BePort), "sys_log_level": "ERROR"}, "be_port: "},
		{"a value that the node does not take", r.be(), []setting.Change{{Key: "max_tablet_version_num", Value: "4711 apples"}}, map[string]string{"max_tablet_version_num": "4711"}, "max_tablet_version_num: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := system.Execute(t.Context(), World{}, setSettings{at: tc.at, changes: tc.changes})
			var notDone *plan.NotDoneError
			if tc.notDone == "" {
				fatal(t, err)
			} else if !errors.As(err, &notDone) || !strings.HasPrefix(notDone.Reason, tc.notDone) || strings.Contains(err.Error(), "apples") {
				t.Errorf("error is %v", err)
			}
			for key, want := range tc.want {
				if got := r.says(t, tc.at, key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			report, _ := r.asker.ask(t.Context(), tc.at, "", "")
			if (len(report.Refused) > 0) != (tc.notDone != "") {
				t.Errorf("refused are %v", report.Refused)
			}
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		gone := r.be()
		gone.http, gone.uid = 1, "gone"
		err := system.Execute(t.Context(), World{}, setSettings{at: gone, changes: []setting.Change{{Key: "sys_log_level", Value: "4711"}}})
		var notDone *plan.NotDoneError
		if !errors.As(err, &notDone) || strings.Contains(err.Error(), "4711") {
			t.Errorf("error is %v", err)
		}
		if report, _ := r.asker.ask(t.Context(), gone, "s", ""); report.Items != nil || report.Reason != meta.ReasonCannotReachSystem {
			t.Errorf("report is %+v", report)
		}
	})
	if r.reads > 0 {
		t.Errorf("Secrets were read %d times although none is named", r.reads)
	}
}

// TestAccount logs in with the account that the resource names, also after it
// was rotated.
func TestAccount(t *testing.T) {
	t.Parallel()
	r := startRunning(t)
	db, err := r.FEs[0].Open("root", "")
	fatal(t, err)
	defer func() { _ = db.Close() }()
	exec := func(text string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), text)
		fatal(t, err)
	}
	exec(`CREATE USER 'op' IDENTIFIED BY 'first4711'`)
	exec(`GRANT ADMIN_PRIV ON *.*.* TO 'op'`)
	ask := func() NodeReport {
		report, _ := r.asker.ask(t.Context(), r.fe(), "start", fmt.Sprint(time.Now().UnixNano()))
		return report
	}
	r.dc.Spec.AdminUser = &dorisv1.AdminUser{Name: "op", Password: "first4711"}
	if got := ask(); got.Items == nil {
		t.Errorf("with the account of the resource: %s", got.Message)
	}
	r.dc.Spec.AuthSecret = "admin"
	if got := ask(); got.Reason != meta.ReasonAccessDenied || !strings.Contains(got.Message, `Secret "admin" does not exist`) {
		t.Errorf("without the Secret: %+v", got)
	}
	secret := map[string][]byte{"username": []byte("op\n"), "password": []byte("first4711\n")}
	r.secrets["shop/admin"] = secret
	if got := ask(); got.Items == nil {
		t.Errorf("with the Secret: %s", got.Message)
	}
	exec(`SET PASSWORD FOR 'op' = PASSWORD('second4711')`)
	if got := ask(); got.Reason != meta.ReasonAccessDenied || strings.Contains(got.Message, "4711") {
		t.Errorf("with the old password: %+v", got)
	}
	secret["password"] = []byte("second4711")
	if got := ask(); got.Items == nil {
		t.Errorf("with the rotated password: %s", got.Message)
	}
	reads := r.reads
	if _, err := r.asker.nodes.Settings(t.Context(), r.be()); err != nil || r.reads != reads {
		t.Errorf("a backend was asked with the account: %v, %d reads more", err, r.reads-reads)
	}
}

// TestAskerForgets holds that what nodes say is kept for a short time only.
func TestAskerForgets(t *testing.T) {
	t.Parallel()
	now := testTime
	double := &nodesDouble{procs: map[string]*process{"a": {uid: "1", values: map[string]string{}}, "b": {uid: "2", values: map[string]string{}}}}
	a := newAsker(double, func() time.Time { return now })
	at := func(pod, uid string) nodeAddress {
		return nodeAddress{cluster: &dorisv1.DorisCluster{}, kind: dorisv1.ComponentBE, pod: pod, uid: types.UID(uid)}
	}
	a.ask(t.Context(), at("a", "1"), "s", "x")
	a.ask(t.Context(), at("a", "1"), "s", "x")
	if double.asked != 1 {
		t.Errorf("the same question was asked %d times", double.asked)
	}
	a.ask(t.Context(), at("a", "1"), "s2", "x")
	a.ask(t.Context(), at("a", "1"), "s2", "y")
	if double.asked != 3 {
		t.Errorf("another process and another question: asked %d times in all", double.asked)
	}
	now = now.Add(time.Hour)
	a.ask(t.Context(), at("b", "2"), "s", "x")
	if len(a.heard) != 1 {
		t.Errorf("after an hour %d reports are kept", len(a.heard))
	}
}
