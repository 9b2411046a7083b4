package counts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
)

func entry(agent, namespace, verb, resource string, code int) audit.Entry {
	resource, sub, _ := strings.Cut(resource, "/")
	return audit.Entry{UserAgent: agent, Namespace: namespace, Verb: verb, Resource: resource, Subresource: sub, Code: code}
}

func TestOf(t *testing.T) {
	entries := []audit.Entry{
		entry("fairlead/v1", "a", "patch", "statefulsets", 200),
		entry("fairlead/v1", "a", "patch", "dorisclusters/status", 409),
		entry("fairlead/v1", "a", "create", "events", 201),
		entry("fairlead/v1", "a", "get", "configmaps", 404),
		entry("fairlead/v1", "a", "watch", "pods", 200),
		entry("fairlead/v1", "b", "delete", "pods", 200),
		entry("fairlead/v1", "", "list", "pods", 200),
		entry("fairlead/v1", "b", "update", "leases", 200),
		entry("simnode", "a", "patch", "pods/status", 200),
	}
	refused := map[string]int{"409 patch dorisclusters/status": 1, "404 get configmaps": 1}
	for _, tc := range []struct {
		name       string
		namespaces []string
		want       Tally
	}{
		{
			name: "everything of one client",
			want: Tally{ObjectWrites: 2, StatusWrites: 1, Events: 1, Leases: 1, Reads: 2, Watches: 1, Refused: refused},
		},
		{
			name: "one namespace", namespaces: []string{"a"},
			want: Tally{ObjectWrites: 1, StatusWrites: 1, Events: 1, Reads: 1, Watches: 1, Refused: refused},
		},
		{name: "a namespace where nothing happened", namespaces: []string{"c"}, want: Tally{Refused: map[string]int{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Of(entries, "fairlead", tc.namespaces...)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Tally{}, "ByKey")); diff != "" {
				t.Errorf("tally (-want +got):\n%s", diff)
			}
			all := got.Writes() + got.Events + got.Leases + got.Reads + got.Watches
			if got.ByKey.Total() != all {
				t.Errorf("%d requests by key, %d in numbers", got.ByKey.Total(), all)
			}
		})
	}
}

// appendRequest writes one audit event.
func appendRequest(t *testing.T, path, agent, verb string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	stage := "ResponseComplete"
	if verb == "watch" {
		stage = "ResponseStarted"
	}
	fmt.Fprintf(f, `{"stage":%q,"verb":%q,"userAgent":%q,"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}`+"\n", stage, verb, agent)
}

func TestSettleWaitsForTheLastRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	c := Client{Log: audit.Open(path), Agent: "fairlead"}
	var requests sync.WaitGroup
	defer requests.Wait()
	requests.Go(func() {
		for range 10 {
			time.Sleep(100 * time.Millisecond) // the pace of the requests
			appendRequest(t, path, "fairlead/v1", "patch")
			appendRequest(t, path, "simnode", "patch")
		}
	})
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	last, err := c.Settle(ctx, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if d := last.Sub(began); d < 900*time.Millisecond {
		t.Errorf("settled after %s, in the middle of the requests", d)
	}
	if tally, err := c.Since(0); err != nil || tally.Writes() != 10 {
		t.Errorf("%d writes, error %v, want 10", tally.Writes(), err)
	}
}

func TestSettleFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	var requests sync.WaitGroup
	defer requests.Wait()
	requests.Go(func() {
		for ctx.Err() == nil {
			appendRequest(t, path, "fairlead/v1", "get")
			time.Sleep(20 * time.Millisecond) // the pace of the requests
		}
	})
	_, err := Client{Log: audit.Open(path), Agent: "fairlead"}.Settle(ctx, 400*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not come to rest") {
		t.Errorf("error is %v", err)
	}
}

func TestSettleIgnoresWatches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	watches.Go(func() {
		for ctx.Err() == nil {
			appendRequest(t, path, "fairlead/v1", "watch")
			time.Sleep(20 * time.Millisecond) // the pace of the watches
		}
	})
	_, err := Client{Log: audit.Open(path), Agent: "fairlead"}.Settle(ctx, 300*time.Millisecond)
	if err != nil {
		t.Error(err)
	}
}
