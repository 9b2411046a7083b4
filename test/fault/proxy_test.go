package fault

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const configMaps = "/api/v1/namespaces/ns/configmaps"

// bench is a proxy in front of a test double of an API server, which counts
// what reaches it.
type bench struct {
	*Proxy
	*testing.T
	client *http.Client
	more   chan string // what the watch tells

	mu    sync.Mutex
	got   []string
	kills int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, more: make(chan string)}
	upstream := httptest.NewTLSServer(http.HandlerFunc(b.serve))
	t.Cleanup(upstream.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
	var err error
	b.Proxy, err = Start(Options{
		Upstream: &rest.Config{Host: upstream.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}},
		Kill: func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.kills++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	transport, err := rest.TransportFor(&rest.Config{Host: b.Config().Host, TLSClientConfig: b.Config().TLSClientConfig, BearerToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	b.client = &http.Client{Transport: transport}
	return b
}

func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	if isTrue(r.URL.Query().Get("watch")) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case text := <-b.more:
				fmt.Fprintln(w, text)
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
	b.mu.Lock()
	b.got = append(b.got, r.Method+" "+r.URL.Path)
	n := len(b.got)
	b.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "answer %d", n)
}

// reached lists what reached the API server.
func (b *bench) reached() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

func (b *bench) do(method, path string) (code int, body string, err error) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), method, b.Config().Host+path, strings.NewReader("{}"))
	if err != nil {
		b.Fatal(err)
	}
	response, err := b.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func TestFaultsAtAWrite(t *testing.T) {
	const path = configMaps + "/a"
	tests := map[string]struct {
		plan    Plan
		broken  bool
		code    int
		reached int // of three writes
		kills   int
	}{
		"killed before: it is not sent":               {Plan{At: 2, When: Before, Do: Kill}, true, 0, 2, 1},
		"killed after: it is sent and never answered": {Plan{At: 2, When: After, Do: Kill}, true, 0, 3, 1},
		"refused: it is not sent":                     {Plan{At: 2, When: Before, Do: Answer, Code: 409}, false, 409, 2, 0},
		"sent and told to have failed":                {Plan{At: 2, When: After, Do: Answer, Code: 503}, false, 503, 3, 0},
		"late":                                        {Plan{At: 2, When: Before, Do: Delay, For: time.Millisecond}, false, 200, 3, 0},
		"another write is meant":                      {Plan{At: 4, When: Before, Do: Kill}, false, 200, 3, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Arm(tc.plan)
			for n := 1; n <= 3; n++ {
				code, _, err := b.do(http.MethodPatch, path)
				wantCode, wantBroken := 200, false
				if n == 2 {
					wantCode, wantBroken = tc.code, tc.broken
				}
				if (err != nil) != wantBroken || code != wantCode {
					t.Errorf("write %d: code %d (%v), want %d, broken %v", n, code, err, wantCode, wantBroken)
				}
			}
			if n := len(b.reached()); n != tc.reached {
				t.Errorf("%d writes reached the API server, want %d", n, tc.reached)
			}
			if b.kills != tc.kills {
				t.Errorf("killed %d times, want %d", b.kills, tc.kills)
			}
			if fired := len(b.Fired()) == 1; fired != (tc.plan.At == 2) {
				t.Errorf("faults that happened: %v", b.Fired())
			}
			w := b.Writes()[1]
			if w.Number != 2 || w.Code != tc.code || w.Resource != "configmaps" || w.Name != "a" || w.Verb != http.MethodPatch {
				t.Errorf("recorded as %s", w)
			}
		})
	}
}

func TestRefusalsAreThoseOfAnAPIServer(t *testing.T) {
	for code, reason := range map[int]metav1.StatusReason{
		409: metav1.StatusReasonConflict, 429: metav1.StatusReasonTooManyRequests,
		500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable,
	} {
		a := refusal(code)
		var got metav1.Status
		if err := json.Unmarshal(a.body, &got); err != nil {
			t.Fatal(err)
		}
		if got.Reason != reason || int(got.Code) != code || got.Kind != "Status" || a.code != code {
			t.Errorf("%d is answered as %s", code, a.body)
		}
	}
}

func TestWritesAreNumbered(t *testing.T) {
	b := newBench(t)
	for _, r := range []string{
		"POST " + configMaps, "GET " + configMaps, "POST /api/v1/namespaces/ns/events",
		"PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/l", "DELETE /apis/apps/v1/namespaces/ns/statefulsets/s",
		"POST /api/v1/namespaces/ns/pods/p/eviction", "PATCH /apis/doris.selectdb.com/v1/namespaces/ns/dorisclusters/d/status",
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "PATCH /api/v1/namespaces/other",
		"GET /apis", "GET /version",
	} {
		method, path, _ := strings.Cut(r, " ")
		if code, _, err := b.do(method, path); err != nil || code != 200 {
			t.Fatalf("%s: %d %v", r, code, err)
		}
	}
	var got []string
	for _, w := range b.Writes() {
		got = append(got, w.String())
	}
	want := []string{
		"1: POST configmaps  → 200", "2: DELETE statefulsets s → 200", "3: POST pods/eviction p → 200",
		"4: PATCH dorisclusters/status d → 200", "5: PATCH namespaces other → 200",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if n := len(b.Unnumbered()); n != 3 {
		t.Errorf("%d other writes, want 3: %v", n, b.Unnumbered())
	}
	b.Arm()
	if n := len(b.Writes()); n != 0 {
		t.Errorf("%d writes right after arming", n)
	}
}

// line is one line of a watch, or why there is none.
type line struct {
	text string
	err  error
}

func (b *bench) watching(ctx context.Context) <-chan line {
	b.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.Config().Host+configMaps+"?watch=true", nil)
	if err != nil {
		b.Fatal(err)
	}
	response, err := b.client.Do(request) //nolint:bodyclose // by who reads it
	if err != nil {
		b.Fatal(err)
	}
	lines := make(chan line, 10)
	go func() {
		defer response.Body.Close()
		buffer := make([]byte, 100)
		for {
			n, err := response.Body.Read(buffer)
			if n > 0 {
				lines <- line{text: strings.TrimSpace(string(buffer[:n]))}
			}
			if err != nil {
				lines <- line{err: err}
				return
			}
		}
	}()
	return lines
}

func (b *bench) next(lines <-chan line) line {
	b.Helper()
	select {
	case l := <-lines:
		return l
	case <-time.After(10 * time.Second):
		b.Fatal("the watch tells nothing")
		return line{}
	}
}

func TestWatchesAreCutAndHeld(t *testing.T) {
	b := newBench(t)
	const hold = 300 * time.Millisecond
	b.Arm(
		Plan{At: 1, When: After, Do: HoldWatch, Resource: "configmaps", For: hold},
		Plan{At: 2, When: After, Do: CutWatch, Resource: "pods"},
		Plan{At: 3, When: After, Do: CutWatch},
	)
	lines := b.watching(t.Context())
	b.more <- "one"
	if got := b.next(lines); got.text != "one" {
		t.Fatalf("the watch tells %v", got)
	}
	write := func() {
		t.Helper()
		if _, _, err := b.do(http.MethodPost, configMaps); err != nil {
			t.Fatal(err)
		}
	}
	write()
	began := time.Now()
	b.more <- "two"
	if got := b.next(lines); got.text != "two" || time.Since(began) < hold/2 {
		t.Errorf("a held watch tells %v after %s", got, time.Since(began))
	}
	write() // cuts others
	b.more <- "three"
	if got := b.next(lines); got.text != "three" {
		t.Errorf("a watch that is not meant tells %v", got)
	}
	write()
	if got := b.next(lines); got.err == nil || errors.Is(got.err, io.EOF) {
		t.Errorf("a cut watch ends with %v", got)
	}
	if n := b.Watches(); n != 1 {
		t.Errorf("%d watches began", n)
	}
}

func TestOldListIsServedOnce(t *testing.T) {
	b := newBench(t)
	b.Arm(Plan{At: 1, When: After, Do: OldList})
	read := func() string {
		t.Helper()
		_, body, err := b.do(http.MethodGet, configMaps)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	first, second := read(), read()
	if first == second {
		t.Fatalf("lists are the same: %s", first)
	}
	if _, _, err := b.do(http.MethodPost, configMaps); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != first {
		t.Errorf("the old list is %q, want %q", got, first)
	}
	if got := read(); got == first || got == second {
		t.Errorf("the next list is old too: %q", got)
	}
	if n := b.OldLists(); n != 1 {
		t.Errorf("%d old lists", n)
	}
}
