package simnode

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		name, pattern, text string
		want                bool
	}{
		{"empty pattern fits all", "", "anything", true},
		{"plain text fits itself", "a/b:1", "a/b:1", true},
		{"plain text fits nothing longer", "a/b", "a/b:1", false},
		{"star crosses slashes", "docker.io/*:be-*", "docker.io/apache/doris:be-2.1", true},
		{"parts have an order", "*b*a", "ab", false},
		{"parts do not overlap", "ab*ba", "aba", false},
		{"star fits nothing", "ab*", "ab", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := matches(tc.pattern, tc.text); got != tc.want {
				t.Errorf("matches(%q, %q) = %t", tc.pattern, tc.text, got)
			}
		})
	}
}

func TestMatchesWhatAPatternWasMadeFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringMatching(`[ab/]{0,3}`), 1, 4).Draw(t, "parts")
		fillings := rapid.SliceOfN(rapid.StringMatching(`[ab/]{0,3}`), len(parts)-1, len(parts)-1).Draw(t, "fillings")
		text := parts[0]
		for i, filling := range fillings {
			text += filling + parts[i+1]
		}
		if pattern := strings.Join(parts, "*"); !matches(pattern, text) {
			t.Fatalf("%q does not fit %q", pattern, text)
		}
	})
}

func TestParseDelay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		text      string
		low, high time.Duration
		fails     bool
	}{
		{text: "1s", low: time.Second, high: time.Second},
		{text: " 500ms .. 3s ", low: 500 * time.Millisecond, high: 3 * time.Second},
		{text: "2s..2s", low: 2 * time.Second, high: 2 * time.Second},
		{text: "~2s", low: 0, high: 20 * time.Second},
		{text: "0s", low: 0, high: 0},
		{text: "", fails: true},
		{text: "1", fails: true},
		{text: "-1s", fails: true},
		{text: "3s..1s", fails: true},
		{text: "1s..", fails: true},
		{text: "25h", fails: true},
	} {
		t.Run(tc.text, func(t *testing.T) {
			delay, err := ParseDelay(tc.text)
			if (err != nil) != tc.fails {
				t.Fatalf("error is %v", err)
			}
			for range 100 {
				if err != nil {
					break
				}
				if d := delay.draw(r); d < tc.low || d > tc.high {
					t.Fatalf("drew %s, want from %s to %s", d, tc.low, tc.high)
				}
			}
		})
	}
}

func FuzzParseDelay(f *testing.F) {
	for _, seed := range []string{"1s", "1s..2s", "~5m", "", "..", "~", "1s..~2s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		delay, err := ParseDelay(text)
		if (delay == nil) == (err == nil) {
			t.Fatalf("delay and error: %v", err)
		}
		if err == nil {
			if d := delay.draw(rand.New(rand.NewPCG(1, 2))); d < 0 || d > 10*maxDelay {
				t.Fatalf("drew %s", d)
			}
		}
	})
}

func FuzzRulesOfObject(f *testing.F) {
	f.Add("image-pull, crash-loop", "3")
	f.Add("unknown,,", "x")
	f.Fuzz(func(t *testing.T, faults, code string) {
		found, err := rulesOfObject(map[string]string{AnnotationFault: faults, AnnotationExitCode: code})
		for _, rule := range found {
			if rule.ExitCode < 0 || rule.ExitCode > 255 {
				t.Fatalf("exit code %d", rule.ExitCode)
			}
			if !strings.Contains(faults, string(rule.Fault)) {
				t.Fatalf("fault %q out of %q (%v)", rule.Fault, faults, err)
			}
		}
	})
}

func TestRulesOfNode(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sim-1", Annotations: map[string]string{
		AnnotationFault: "frozen, typo", AnnotationFailImages: "a/*, b:1",
	}}}
	got, err := rulesOfNode(node)
	want := rules{
		{Fault: FaultFrozen, Node: "sim-1"},
		{Fault: FaultImagePull, Image: "a/*", Node: "sim-1"},
		{Fault: FaultImagePull, Image: "b:1", Node: "sim-1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), "typo") {
		t.Errorf("error %v does not name the unknown fault", err)
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "B": ""}
	for _, tc := range []struct{ name, text, want string }{
		{"known names are replaced", "x$(A)y$(B)z", "x1yz"},
		{"unknown names stay", "$(C)", "$(C)"},
		{"doubled dollars are plain", "$$(A)$", "$(A)$"},
		{"an open reference stays", "$(A", "$(A"},
		{"shell references stay", "${A} $A", "${A} $A"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := expand(tc.text, env); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A)$$($")
	f.Fuzz(func(t *testing.T, text string) {
		got := expand(text, map[string]string{"A": "1"})
		if !strings.Contains(text, "$") && got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
