package demo_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/test/demo"
)

// small are clusters whose claims differ: one has claims for logs alone, one for metadata
// alone, one for data alone, and one none.
type small struct{ *kept }

// smallNamespace is where they are: other parts of the story count the Pods of theirs.
const smallNamespace = "small"

// smallClusters have, by name, the directory of each component that is a claim. Frontends
// whose metadata goes with their Pods are three: one that is replaced joins the others.
var smallClusters = map[string]struct {
	frontends    int
	feDir, beDir string
	// replaced are the Pods that are deleted, and whether their settings are there afterwards.
	replaced map[string]bool
	// notKept are the components that say so.
	notKept string
}{
	"logs": {3, "/opt/apache-doris/fe/log", "/opt/apache-doris/be/log", map[string]bool{"logs-fe-2": true, "logs-be-0": true}, ""},
	"meta": {1, "/opt/apache-doris/fe/doris-meta", "", map[string]bool{"meta-fe-0": true, "meta-be-0": false}, "be"},
	"data": {1, "", "/opt/apache-doris/be/storage", map[string]bool{"data-be-0": true}, "fe"},
	"none": {1, "", "", map[string]bool{"none-be-0": false}, "fe and be"},
}

// smallCluster is one of them.
func smallCluster(name string) string {
	c := smallClusters[name]
	part := func(kind string, replicas int, dir, more string) string {
		claim := ""
		if dir != "" {
			claim = fmt.Sprintf(", persistentVolumes: [{name: one, mountPath: %s, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]", dir)
		}
		return fmt.Sprintf("  %sSpec: {replicas: %d, image: apache/doris:%s-2.1.8, requests: {cpu: 10m, memory: 32Mi}%s%s}\n", kind, replicas, kind, more, claim)
	}
	return fmt.Sprintf("apiVersion: doris.selectdb.com/v1\nkind: DorisCluster\nmetadata: {name: %s}\nspec:\n", name) +
		part("fe", c.frontends, c.feDir, fmt.Sprintf(", electionNumber: %d", c.frontends)) + part("be", 1, c.beDir, ", skipDefaultSystemInit: true")
}

// createSmall makes them, and waits for nothing.
func createSmall(ctx context.Context, t *testing.T, d *demo.Demo) *small {
	t.Helper()
	s := &small{&kept{live: live{T: t, Demo: d}, want: map[string]string{}, namespace: smallNamespace}}
	s.kubectl(ctx, "create", "namespace", smallNamespace)
	for name := range smallClusters {
		s.apply(ctx, smallCluster(name))
	}
	return s
}

func (s *small) apply(ctx context.Context, manifest string) {
	s.Helper()
	file := s.TempDir() + "/manifest.yaml"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		s.Fatal(err)
	}
	s.kubectl(ctx, "apply", "-n", smallNamespace, "-f", file)
}

// keepWhereTheyCan changes a setting of nodes of each cluster, deletes their Pods and looks:
// it is there in each that has a claim, and no others, which say so.
func (s *small) keepWhereTheyCan(ctx context.Context, t *testing.T) {
	t.Helper()
	s.T = t
	for name := range smallClusters {
		s.ready(ctx, name)
	}
	gone, before := []string{"delete", "pod", "-n", smallNamespace, "--wait=true"}, map[string]string{}
	for name, c := range smallClusters {
		said := s.says(ctx, name, "RuntimeConfigurationKept")
		if (said == "") != (c.notKept == "") || !strings.Contains(said, c.notKept) {
			s.Errorf("%s says of what is not kept: %q, want %q", name, said, c.notKept)
		}
		for pod, there := range c.replaced {
			before[pod] = s.uid(ctx, pod)
			s.setting(ctx, pod, "4711")
			if gone = append(gone, pod); !there {
				s.want[pod] = ""
			}
		}
	}
	s.kubectl(ctx, gone...)
	for pod := range s.want {
		s.await(ctx, pod+" is another Pod", func() bool { return s.uid(ctx, pod) != before[pod] && s.uid(ctx, pod) != "" })
	}
	for name := range smallClusters {
		s.ready(ctx, name)
	}
	for pod, want := range s.want {
		if want != "" {
			s.there(ctx, pod, "its Pod was deleted")
			continue
		}
		got := ""
		s.await(ctx, pod+" answers", func() bool { got = s.has(ctx, pod); return got != "" })
		if s.looks++; got == "4711" {
			s.Errorf("%s has no claim, and has its setting all the same", pod)
		}
	}
	s.Logf("%d settings were looked for in %d clusters", s.looks, len(smallClusters))
	s.claimsGo(ctx)
	s.kubectl(ctx, "delete", "namespace", smallNamespace, "--wait=false")
}

// claimsGo has a backend scaled in whose claim is kept, and then one whose claim is not: what
// was changed in it is there when it comes back, and gone with its claim.
func (s *small) claimsGo(ctx context.Context) {
	s.Helper()
	const pod, claim = "data-be-1", "one-data-be-1"
	scale := func(n int) {
		s.kubectl(ctx, "patch", "dcr", "data", "-n", smallNamespace, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"beSpec":{"replicas":%d}}}`, n))
		s.await(ctx, fmt.Sprintf("data has %d backends", n), func() bool { return (s.uid(ctx, pod) != "") == (n > 1) })
		s.ready(ctx, "data")
	}
	for _, retention := range []string{"Retain", "Delete"} {
		scale(2)
		if retention == "Delete" {
			s.there(ctx, pod, "scaled in and out on the claim that was kept")
		} else {
			s.setting(ctx, pod, "4712")
		}
		s.kubectl(ctx, "patch", "dcr", "data", "-n", smallNamespace, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"beSpec":{"claimRetention":{"whenScaledIn":%q}}}}`, retention))
		s.ready(ctx, "data")
		scale(1)
		if retention == "Delete" {
			s.await(ctx, "the claim goes", func() bool { return !strings.Contains(s.claims(ctx), claim) })
		} else if !strings.Contains(s.claims(ctx), claim) {
			s.Errorf("%s is not kept", claim)
		}
	}
	scale(2)
	got := ""
	s.await(ctx, pod+" answers", func() bool { got = s.has(ctx, pod); return got != "" })
	if s.looks++; got == s.want[pod] {
		s.Errorf("the claim of %s was deleted, and it has %s", pod, got)
	}
	if lost := s.says(ctx, "data", "RuntimeConfigurationLost"); strings.Contains(lost, pod) {
		s.Errorf("%s is a new member, and is said to have lost something: %s", pod, lost)
	}
}

func (s *small) claims(ctx context.Context) string {
	out, err := s.Kubectl(ctx, "get", "pvc", "-n", smallNamespace, "-o", "name")
	if err != nil {
		return "unknown"
	}
	return out
}

// setting changes the setting of a node.
func (s *small) setting(ctx context.Context, pod, value string) {
	s.Helper()
	kind := strings.Split(pod, "-")[1]
	out := s.kubectl(ctx, "exec", "-n", smallNamespace, pod, "-c", kind, "--", "bash", "-c", setOnce[kind], "set", keptSetting[kind], value)
	if !slices.ContainsFunc([]string{"OK", `"persist":"Written"`}, func(part string) bool { return strings.Contains(out, part) }) {
		s.Fatalf("%s does not take its setting: %s", pod, out)
	}
	s.want[pod] = value
}

func (s *small) uid(ctx context.Context, pod string) string {
	out, err := s.Kubectl(ctx, "get", "pod", pod, "-n", smallNamespace, "-o", "jsonpath={.metadata.uid}", "--ignore-not-found")
	if err != nil {
		return ""
	}
	return out
}

// ready waits until a cluster is as its spec says now.
func (s *small) ready(ctx context.Context, name string) {
	s.Helper()
	s.await(ctx, name+" is ready", func() bool {
		out, err := s.Kubectl(ctx, "get", "dcr", name, "-n", smallNamespace, "-o", `jsonpath={.metadata.generation}/{.status.observedGeneration}/{.status.conditions[?(@.type=="Ready")].status}`)
		part := strings.Split(out, "/")
		return err == nil && len(part) == 3 && part[0] == part[1] && part[2] == "True"
	})
}

// says is what a condition of a cluster says.
func (s *small) says(ctx context.Context, name, condition string) string {
	s.Helper()
	return s.kubectl(ctx, "get", "dcr", name, "-n", smallNamespace, "-o", fmt.Sprintf("jsonpath={.status.conditions[?(@.type==%q)].message}", condition))
}
