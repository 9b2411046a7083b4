package alerts

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"go.yaml.in/yaml/v3"
)

const rulesFile = "../../config/monitoring/alerts.yaml"

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         model.Duration    `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// object are the labels of one custom resource.
const object = `system="doriscluster", namespace="shop", name="doris"`

func condition(kind, values string) string {
	return fmt.Sprintf("fairlead_condition{%s, condition=%q} %s\n", object, kind, values)
}

// cases are series, one sample a minute, that fire a rule at their end or do not.
var cases = []struct {
	alert, situation, series string
	fires                    bool
}{
	{"FairleadDown", "it was there and is gone", `fairlead_info{version="1"} 1x10 _x20`, true},
	{"FairleadDown", "it is there", `fairlead_info{version="1"} 1x30`, false},
	{"FairleadDown", "it restarts", `fairlead_info{version="1"} 1x10 _x6 1x4`, false},

	{"FairleadReconcileFailing", "every reconcile fails", `fairlead_reconcile_total{system="doriscluster", outcome="failed"} 0+1x40`, true},
	{"FairleadReconcileFailing", "one failed", `fairlead_reconcile_total{system="doriscluster", outcome="failed"} 0x20 1x20`, false},
	{"FairleadReconcileFailing", "all settle", `fairlead_reconcile_total{system="doriscluster", outcome="settled"} 0+5x40`, false},

	{"FairleadNotSettling", "it happened", `fairlead_reconcile_unsettled_total{system="doriscluster"} 0x20 1x20`, true},
	{"FairleadNotSettling", "never", `fairlead_reconcile_unsettled_total{system="doriscluster"} 0x40`, false},

	{"FairleadForbidden", "again and again", `rest_client_requests_total{code="403", method="GET"} 0+1x40`, true},
	{"FairleadForbidden", "other refusals", `rest_client_requests_total{code="409", method="PUT"} 0+1x40`, false},

	{"FairleadUnavailable", "for ten minutes", condition("Available", "0x10"), true},
	{"FairleadUnavailable", "it serves", condition("Available", "1x10"), false},
	{"FairleadUnavailable", "for a moment", condition("Available", "1x10 0x2 1x5"), false},

	{"FairleadNotReady", "for more than an hour", condition("Ready", "0x70"), true},
	{"FairleadNotReady", "while an image rolls", condition("Ready", "0x30"), false},

	{"FairleadStalled", "for long", condition("Stalled", "1x20"), true},
	{"FairleadStalled", "the condition is not there", condition("Ready", "1x20"), false},

	{"FairleadRollStopped", "the same Pods for hours", "fairlead_pods_to_replace{" + object + "} 2x150", true},
	{"FairleadRollStopped", "it goes on", "fairlead_pods_to_replace{" + object + "} 9x40 8x40 7x40 6x30", false},
	{"FairleadRollStopped", "no roll", "fairlead_pods_to_replace{" + object + "} 0x150", false},

	{"FairleadChangesHeld", "for eight days", "fairlead_changes{" + object + `, verdict="hold"} 3x11600`, true},
	{"FairleadChangesHeld", "what waits is not held", "fairlead_changes{" + object + `, verdict="wait"} 3x11600`, false},

	{"FairleadConfigurationOutOfSync", "for an hour", condition("ConfigurationInSync", "0x60"), true},
	{"FairleadConfigurationOutOfSync", "in sync", condition("ConfigurationInSync", "1x60"), false},

	{"FairleadMembersNotRegistered", "for long", condition("MembersRegistered", "0x20"), true},
	{"FairleadMembersNotRegistered", "nobody can tell", condition("MembersRegistered", "-1x20"), false},

	{"FairleadNodeUnreachable", "for long", condition("NodeUnreachable", "1x10"), true},
	{"FairleadNodeUnreachable", "another condition", condition("Stalled", "1x10"), false},

	{"FairleadSystemUnreachable", "all calls fail", `fairlead_system_calls_total{system="doriscluster", call="members", outcome="unreachable"} 0+1x60`, true},
	{"FairleadSystemUnreachable", "one of four fails", `fairlead_system_calls_total{system="doriscluster", call="members", outcome="denied"} 0+1x60
  fairlead_system_calls_total{system="doriscluster", call="members", outcome="ok"} 0+3x60`, false},

	{"FairleadConfigRefused", "for long", `fairlead_config_last_reload_successful 0x10`, true},
	{"FairleadConfigRefused", "it is in force", `fairlead_config_last_reload_successful 1x10`, false},

	{"FairleadConfigNeedsRestart", "for two days", `fairlead_config_restart_required{option="workers"} 1x2900`, true},
	{"FairleadConfigNeedsRestart", "for an hour", `fairlead_config_restart_required{option="workers"} 1x60`, false},
}

// TestAlerts evaluates each rule as Prometheus does: it fires when its expression had
// a result at every minute for as long as it says.
func TestAlerts(t *testing.T) {
	all := rules(t)
	for _, c := range cases {
		t.Run(c.alert+"/"+c.situation, func(t *testing.T) {
			i := slices.IndexFunc(all, func(r rule) bool { return r.Alert == c.alert })
			if i < 0 {
				t.Fatalf("there is no rule %s", c.alert)
			}
			if got := fires(t, all[i], c.series); got != c.fires {
				t.Errorf("fires is %t", got)
			}
		})
	}
	for _, r := range all {
		both := map[bool]bool{}
		for _, c := range cases {
			if c.alert == r.Alert {
				both[c.fires] = true
			}
		}
		if !both[true] || !both[false] {
			t.Errorf("%s has no case that fires it, or none that does not", r.Alert)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
			t.Errorf("%s lacks its severity, summary or description", r.Alert)
		}
	}
}

func fires(t *testing.T, r rule, series string) bool {
	t.Helper()
	engine := promqltest.NewTestEngine(t, false, 0, 1_000_000)
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.TrimSpace(series)+"\n")
	end := time.Unix(0, 0).UTC().Add(time.Duration(samples(series)-1) * time.Minute)
	var firing map[string]bool
	for at := end.Add(-time.Duration(r.For)); !at.After(end); at = at.Add(time.Minute) {
		query, err := engine.NewInstantQuery(t.Context(), storage, nil, r.Expr, at)
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		result := query.Exec(t.Context())
		vector, err := result.Vector()
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		firing = still(firing, vector)
		query.Close()
	}
	return len(firing) > 0
}

// still keeps of the series that fired so far those that fire now as well.
func still(before map[string]bool, now promql.Vector) map[string]bool {
	out := map[string]bool{}
	for _, s := range now {
		key := s.Metric.DropReserved(func(name string) bool { return name == string(model.MetricNameLabel) }).String()
		if before == nil || before[key] {
			out[key] = true
		}
	}
	return out
}

// samples counts the samples of the first series: "a+bxn" is one and n more.
func samples(series string) int {
	first, _, _ := strings.Cut(strings.TrimSpace(series), "\n")
	n := 0
	for _, found := range regexp.MustCompile(`[^ ]+x(\d+)`).FindAllStringSubmatch(first[strings.LastIndexAny(first, "}")+1:], -1) {
		var times int
		if _, err := fmt.Sscan(found[1], &times); err != nil {
			panic(err)
		}
		if n += times; !strings.HasPrefix(found[0], "_") {
			n++
		}
	}
	return n
}

// TestOnlyMetricsThatThereAre holds that rules ask for documented metrics.
func TestOnlyMetricsThatThereAre(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t) {
		for _, name := range regexp.MustCompile(`\b(fairlead|rest_client)_\w+`).FindAllString(r.Expr, -1) {
			if !strings.Contains(string(page), "`"+name) {
				t.Errorf("%s asks for %s, which docs/metrics.md does not name", r.Alert, name)
			}
		}
	}
}
