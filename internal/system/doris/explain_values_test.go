package doris

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// TestValuesAreAskedOfNodes holds what is shown of the values of a cluster: what each node
// says itself, and of one that says nothing why.
func TestValuesAreAskedOfNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.ReplaceAll(smallCluster, "beSpec: {replicas: 1", "beSpec: {replicas: 3")).withNodes()
	w.settle()
	w.nodes.procs["doris-be-0"].values["max_tablet_version_num"] = "917331"
	w.nodes.down["doris-be-1"] = true
	world := seen(w)
	for i := range world.Pods["be"] {
		if pod := &world.Pods["be"][i]; pod.Name == "doris-be-2" {
			pod.Status.PodIP = ""
		}
	}
	said := func() string {
		var out []string
		for _, a := range AskValues(t.Context(), w.dc, world, w.nodes, func(kind dorisv1.ComponentType, key string) bool {
			return kind == dorisv1.ComponentFE && key != "disable_balance" || SameSetting(key, "experimental_max_tablet_version_num")
		}) {
			line := a.Pod + ": " + a.Silent
			for _, v := range a.Values {
				line += fmt.Sprintf("%s=%s mutable %t; ", v.Key, v.Value, v.Mutable)
			}
			out = append(out, strings.TrimSpace(line))
		}
		return strings.Join(out, "\n")
	}
	if diff := cmp.Diff(strings.TrimSpace(`
doris-fe-0: max_agent_task_threads_num=4096 mutable false; qe_slow_log_ms=5000 mutable true;
doris-be-0: max_tablet_version_num=917331 mutable true;
doris-be-1: nobody answers
doris-be-2: its container does not run`), said()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	world.StatefulSets["doris-be"].Annotations = nil
	w.dc.Status.Workloads = nil
	if got := said(); !strings.Contains(got, "doris-be-0: the operator has not recorded yet where it listens") {
		t.Errorf("of a set without a record: %s", got)
	}
}

func TestCredentialsAreHidden(t *testing.T) {
	t.Parallel()
	for key, test := range map[string]struct {
		value  string
		hidden bool
	}{
		"qe_slow_log_ms":              {"5000", false},
		"a_mask":                      {"********", true},
		"initial_root_password":       {"917331", true},
		"aws_access_key_id":           {"917331", true},
		"s3_secret":                   {"917331", true},
		"http_token":                  {"917331", true},
		"tls_private_key_path":        {"/etc/key", true},
		"ldap_url":                    {"ldap://admin:917331@ldap:389", true},
		"meta_service_endpoint":       {"http://ms:5000/a@b", false},
		"java_opts":                   {"-Djavax.net.ssl.keyStorePassword=917331 -Xmx1g", true},
		"ranger":                      {"jdbc:mysql://root:917331@db/x", true},
		"key_of_columns_may_be_shown": {"x", false},
	} {
		got := valuesOf([]setting.Item{{Key: key, Value: test.value}}, func(string) bool { return true })[0]
		if got.Hidden != test.hidden || (got.Value == "") != test.hidden {
			t.Errorf("%s is shown as %+v", key, got)
		}
	}
}
