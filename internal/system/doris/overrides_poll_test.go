package doris

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/internal/system/doris/overrides"
)

// TestWhatANodeSaysIsJudged holds what is made of one setting of a node, by the file that
// it started with, the newest one, and what the operator has set since.
func TestWhatANodeSaysIsJudged(t *testing.T) {
	t.Parallel()
	x := func(value string) map[string]string { return map[string]string{"x": value} }
	free := overrides.Setting{Key: "x", Check: overrides.Check("x", "2")}
	same, changed := overrides.Setting{Key: "x", InFile: true}, overrides.Setting{Key: "x", InFile: true, Changed: true}
	for name, tc := range map[string]struct {
		started, file map[string]string
		set, done     bool
		unread        bool
		item          setting.Item
		want          []overrides.Setting
	}{
		"no file names it": {item: setting.Item{}, want: []overrides.Setting{free}},
		"the operator has set it, and no file names it": {set: true, done: true, want: []overrides.Setting{{Key: "x", Unclear: true}}},
		"as the file says":                             {started: x("2"), file: x("2"), want: []overrides.Setting{same}},
		"as the file says, in another spelling":        {started: x(" 2 "), file: x(" 2 "), want: []overrides.Setting{same}},
		"another than the file":                        {started: x("1"), file: x("1"), want: []overrides.Setting{changed}},
		"another than the file, under its older name":  {started: map[string]string{"experimental_x": "1"}, file: map[string]string{"experimental_x": "1"}, want: []overrides.Setting{changed}},
		"as the newest file says":                      {started: x("1"), file: x("2"), want: []overrides.Setting{same}},
		"not given the newest file yet":                {started: x("2"), file: x("3"), want: []overrides.Setting{same}},
		"another than both files":                      {started: x("1"), file: x("3"), want: []overrides.Setting{changed}},
		"to be given what the newest file names first": {file: x("3"), set: true, want: []overrides.Setting{{Key: "x", InFile: true, Changed: true, Unclear: true}}},
		"given what the newest file names first":       {file: x("2"), set: true, done: true, want: []overrides.Setting{same}},
		"given that, and another":                      {file: x("3"), set: true, done: true, want: []overrides.Setting{changed}},
		"taken out of the file, and back at a default": {started: x("3"), set: true, done: true, want: []overrides.Setting{{Key: "x", InFile: true, Changed: true, Unclear: true}}},
		"taken out of the file, and not back yet":      {started: x("2"), set: true, want: []overrides.Setting{same}},
		"a file that could not be read":                {unread: true, want: []overrides.Setting{{Key: "x", Unclear: true}}},
		"a value of the environment":                   {started: x("${NOBODY_KNOWS}"), file: x("${NOBODY_KNOWS}"), want: []overrides.Setting{{Key: "x", InFile: true, Changed: true, Unclear: true}}},
		"a value that the node keeps to itself":        {item: setting.Item{Value: "********"}, want: []overrides.Setting{{Key: "x", Unclear: true}}},
		"a name that speaks of a secret":               {item: setting.Item{Key: "x_password"}, want: []overrides.Setting{{Key: "x_password", Unclear: true}}},
		"what stops the balancing":                     {item: setting.Item{Key: "disable_balance"}, want: []overrides.Setting{{Key: "disable_balance", Unclear: true}}},
		"read at the start only":                       {item: setting.Item{Comment: "fixed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := setting.Item{Key: "x", Value: "2", Type: "int", Mutable: tc.item.Comment == ""}
			if tc.item.Key != "" {
				item.Key = tc.item.Key
			}
			if tc.item.Value != "" {
				item.Value = tc.item.Value
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{dorisv1.LabelComponent: "be"}}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "be", ContainerID: "a", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			if tc.set {
				pod.Annotations = map[string]string{meta.AnnotationLive: liveRecord{Start: "a", Keys: []string{"x"}, Done: tc.done}.String()}
			}
			env := func(string) (string, bool) { return "", false }
			judge := judgeOf(pod, settingsFile{values: tc.started, env: env, known: !tc.unread}, settingsFile{values: tc.file, env: env, known: true})
			if diff := cmp.Diff(tc.want, judge([]setting.Item{item})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// turnsDouble is a test double of nodes that notes who is asked.
type turnsDouble struct {
	mu    sync.Mutex
	asked []string
	down  bool
}

func (d *turnsDouble) Poll(_ context.Context, at nodeAddress) ([]setting.Item, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked = append(d.asked, at.pod); d.down {
		return nil, errors.New("nobody answers")
	}
	return nil, nil
}

// TestNodesHaveTheirTurn holds that nobody is asked sooner than is said, that not more than
// some nodes are at a time, and all of them in the end; and that what a node said counts
// until it says something else.
func TestNodesHaveTheirTurn(t *testing.T) {
	t.Parallel()
	const many = 2*pollSize + 3
	now, d := testTime, &turnsDouble{}
	a := newAsker(nil, func() time.Time { return now })
	var nodes []pollNode
	for i := range many {
		nodes = append(nodes, pollNode{
			at: nodeAddress{pod: fmt.Sprintf("doris-be-%d", i)}, start: "a", judge: func([]setting.Item) []overrides.Setting { return nil },
		})
	}
	of := pollSubject{&dorisv1.DorisCluster{}, dorisv1.ComponentBE, 10 * time.Minute}
	heard := func() int { return len(a.poll(t.Context(), d, of, nodes)) }
	for goes, want := range []int{pollSize, 2 * pollSize, many, many, many} { // who was never asked is, at once
		if got := heard(); got != want || len(d.asked) != min((goes+1)*pollSize, many) {
			t.Fatalf("go %d: %d nodes were heard, want %d; %d were asked", goes+1, got, want, len(d.asked))
		}
	}
	d.asked = nil
	for round := range 3 {
		now = now.Add(of.every)
		for range 3 {
			heard()
		}
		if len(d.asked) != (round+1)*pollSize {
			t.Fatalf("round %d: %d were asked", round+1, len(d.asked))
		}
	}
	slices.Sort(d.asked)
	if d.asked = slices.Compact(d.asked); len(d.asked) != many {
		t.Errorf("asked were %d of %d", len(d.asked), many)
	}
	d.down, d.asked = true, nil
	if got := heard(); got != many {
		t.Errorf("nobody answers, and %d count", got)
	}
	nodes[0].start = "b"
	if got := heard(); got != many-1 {
		t.Errorf("one runs another container, and %d count", got)
	}
	nodes[1].basis = "the operator has set something since"
	if got := heard(); got != many-2 {
		t.Errorf("one was judged by what does not hold any more, and %d count", got)
	}
	if got := fmt.Sprintf("%d %v", heard(), d.asked); got != fmt.Sprintf("%d [doris-be-0 doris-be-1]", many-2) {
		t.Errorf("each was asked anew, once, and it does not answer; heard and asked are %s", got)
	}
	now = now.Add(6 * of.every)
	if got := len(a.poll(t.Context(), d, of, nodes)); got != 0 {
		t.Errorf("after an hour %d count", got)
	}
}

// TestAskingReadsAnAccountOnce holds that who is asked time and again costs the API server
// nothing: the Secret of the account is read again when it is another one.
func TestAskingReadsAnAccountOnce(t *testing.T) {
	t.Parallel()
	reads := 0
	nowhere := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody is there") }
	nodes := NewNodes(nowhere, func(context.Context, string, string) (map[string][]byte, error) {
		reads++
		return map[string][]byte{corev1.BasicAuthPasswordKey: []byte("917331")}, nil
	}).(Poller)
	dc := &dorisv1.DorisCluster{Spec: dorisv1.DorisClusterSpec{AuthSecret: "account"}}
	for _, step := range []struct {
		account string
		want    int
	}{{"1", 1}, {"1", 1}, {"2", 2}, {"2", 2}, {"", 3}, {"", 4}} {
		if _, err := nodes.Poll(t.Context(), nodeAddress{cluster: dc, kind: dorisv1.ComponentFE, host: "10.0.0.1", query: 9030, account: step.account}); err == nil {
			t.Error("nobody is there, and somebody answered")
		}
		if reads != step.want {
			t.Errorf("version %q: the Secret was read %d times, want %d", step.account, reads, step.want)
		}
	}
}
