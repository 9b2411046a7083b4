package runtimeconfig

import (
	stdcmp "cmp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

const annotation = "doris.apache.org/runtime-config-policy"

// told is what a ruling or a decision says, in few words: severities and reasons.
func told(findings []plan.Finding) string {
	words := make([]string, 0, len(findings))
	for _, f := range findings {
		words = append(words, string(f.Severity)+" "+f.Reason)
	}
	return strings.Join(words, ", ")
}

func refuses(reason string) string { return string(plan.Refusal) + " " + reason }
func warns(reason string) string   { return string(plan.Warning) + " " + reason }

func TestRule(t *testing.T) {
	t.Parallel()
	yes, no := new(true), new(false)
	tests := map[string]struct {
		cluster Cluster
		policy  Policy
		record  Policy
		said    string
	}{
		"new, nothing asked: automatic, recorded":                    {Cluster{}, Automatic, Automatic, ""},
		"new, asked for: enabled, recorded":                          {Cluster{Enabled: yes}, Enabled, Enabled, ""},
		"new, asked not to: disabled, recorded":                      {Cluster{Enabled: no}, Disabled, Disabled, ""},
		"existing without a record: legacy, recorded":                {Cluster{Existed: true}, Legacy, Legacy, ""},
		"existing without a record, asked not to: legacy":            {Cluster{Existed: true, Enabled: no}, Legacy, Legacy, ""},
		"existing without a record, asked for: enabled":              {Cluster{Existed: true, Enabled: yes}, Enabled, Enabled, ""},
		"record taken away while settings are kept: legacy":          {Cluster{Existed: true, Keeps: true}, Legacy, Legacy, ""},
		"record taken away while kept, asked not to: refused":        {Cluster{Existed: true, Keeps: true, Enabled: no}, Legacy, Legacy, refuses(ReasonNoWayBack)},
		"operator restarted on automatic: the same":                  {Cluster{Recorded: "automatic", Existed: true, Keeps: true}, Automatic, "", ""},
		"automatic, asked for: enabled from now on":                  {Cluster{Recorded: "automatic", Existed: true, Keeps: true, Enabled: yes}, Enabled, Enabled, ""},
		"automatic and kept, asked not to: refused":                  {Cluster{Recorded: "automatic", Existed: true, Keeps: true, Enabled: no}, Automatic, "", refuses(ReasonNoWayBack)},
		"automatic and nothing kept, asked not to: disabled":         {Cluster{Recorded: "automatic", Existed: true, Enabled: no}, Disabled, Disabled, ""},
		"automatic before the first workload, asked not to: opt out": {Cluster{Recorded: "automatic", Enabled: no}, Disabled, Disabled, ""},
		"enabled, field taken out: stays enabled":                    {Cluster{Recorded: "enabled", Existed: true, Keeps: true}, Enabled, "", ""},
		"enabled, still asked for: the same":                         {Cluster{Recorded: "enabled", Existed: true, Keeps: true, Enabled: yes}, Enabled, "", ""},
		"enabled and kept, asked not to: refused":                    {Cluster{Recorded: "enabled", Existed: true, Keeps: true, Enabled: no}, Enabled, "", refuses(ReasonNoWayBack)},
		"enabled and never deployed, asked not to: opt out":          {Cluster{Recorded: "enabled", Enabled: no}, Disabled, Disabled, ""},
		"legacy: stays":                                             {Cluster{Recorded: "legacy", Existed: true}, Legacy, "", ""},
		"legacy, all workloads gone: stays":                         {Cluster{Recorded: "legacy"}, Legacy, "", ""},
		"legacy, asked not to: stays legacy":                        {Cluster{Recorded: "legacy", Existed: true, Enabled: no}, Legacy, "", ""},
		"legacy, asked for: enabled":                                {Cluster{Recorded: "legacy", Existed: true, Enabled: yes}, Enabled, Enabled, ""},
		"disabled, field taken out: stays":                          {Cluster{Recorded: "disabled", Existed: true}, Disabled, "", ""},
		"disabled, asked for: enabled":                              {Cluster{Recorded: "disabled", Existed: true, Enabled: yes}, Enabled, Enabled, ""},
		"automatic by hand, where workloads say legacy: legacy":     {Cluster{Recorded: "automatic", Existed: true, Copies: []Policy{Legacy}}, Legacy, "", warns(ReasonPolicyDiffers)},
		"enabled by hand, where workloads say disabled: disabled":   {Cluster{Recorded: "enabled", Existed: true, Copies: []Policy{Automatic, Disabled}}, Disabled, "", warns(ReasonPolicyDiffers)},
		"legacy, where workloads say automatic: legacy":             {Cluster{Recorded: "legacy", Existed: true, Keeps: true, Copies: []Policy{Automatic}}, Legacy, "", ""},
		"enabled and asked for, workloads not yet written: enabled": {Cluster{Recorded: "enabled", Existed: true, Enabled: yes, Copies: []Policy{Legacy}}, Enabled, "", ""},
		"automatic, workloads as well: automatic":                   {Cluster{Recorded: "automatic", Existed: true, Keeps: true, Copies: []Policy{Automatic, Automatic}}, Automatic, "", ""},
		"a word that nobody knows: no change":                       {Cluster{Recorded: "auto", Existed: true, Enabled: yes}, Legacy, "", warns(ReasonPolicyUnknown)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.cluster.Annotation = annotation
			got := Rule(test.cluster)
			if got.Policy != test.policy || got.Record != test.record || told(got.Findings) != test.said {
				t.Errorf("policy %q, to be recorded %q, said %q; want %q, %q, %q", got.Policy, got.Record, told(got.Findings), test.policy, test.record, test.said)
			}
			if again := Rule(Cluster{
				Recorded: stdcmp.Or(string(got.Record), test.cluster.Recorded), Annotation: annotation, Existed: test.cluster.Existed, Keeps: test.cluster.Keeps, Enabled: test.cluster.Enabled, Copies: test.cluster.Copies,
			}); again.Record != "" {
				t.Errorf("decided once more it would be recorded as %q: a record must settle", again.Record)
			}
		})
	}
}

const (
	feHome = "/opt/apache-doris/fe"
	beHome = "/opt/apache-doris/be"
)

func frontend(mounts ...Mount) Component {
	return Component{
		Kind: Frontend, Name: "fe", Field: "spec.feSpec", Mounts: mounts,
		LogDir: feHome + "/log", DataDirs: []string{feHome + "/doris-meta"}, Default: feHome + "/conf",
	}
}

func backend(mounts ...Mount) Component {
	return Component{
		Kind: Backend, Name: "be", Field: "spec.beSpec", Mounts: mounts,
		LogDir: beHome + "/log", DataDirs: []string{beHome + "/storage"}, Default: beHome + "/conf",
	}
}

func claim(name, at string, change ...func(*Mount)) Mount {
	m := Mount{Volume: name, Path: at, Claim: true}
	for _, c := range change {
		c(&m)
	}
	return m
}

func emptyDir(name, at string) Mount { return Mount{Volume: name, Path: at} }
func readOnly(m *Mount)              { m.ReadOnly = true }
func subPath(p string) func(*Mount)  { return func(m *Mount) { m.SubPath = p } }
func expr(m *Mount)                  { m.SubPathExpr = "$(POD_NAME)" }

func cached(c Component, roots ...string) Component {
	c.Caches = roots
	return c
}

func names(c Component, custom string) Component {
	c.Custom = custom
	return c
}

func kept(volume, at string) *Record { return &Record{State: Kept, Volume: volume, MountPath: at} }

// TestDecideNew is the choice of storage for components that are made for the first
// time, under each policy that asks for it.
func TestDecideNew(t *testing.T) {
	t.Parallel()
	feLog, feMeta, beLog, beData := feHome+"/log", feHome+"/doris-meta", beHome+"/log", beHome+"/storage"
	ms := Component{Kind: Meta, Name: "ms", Field: "spec.metaService", LogDir: "/opt/apache-doris/ms/log"}
	tests := map[string]struct {
		component Component
		record    *Record
		// refused is the reason even where the policy is automatic.
		refused string
	}{
		"fe, claims for logs and metadata: that of the logs":     {frontend(claim("fe-log", feLog), claim("fe-meta", feMeta)), kept("fe-log", feLog), ""},
		"fe, the order of mounts does not matter":                {frontend(claim("fe-meta", feMeta), claim("fe-log", feLog)), kept("fe-log", feLog), ""},
		"fe, claim for metadata only: that":                      {frontend(claim("fe-meta", feMeta)), kept("fe-meta", feMeta), ""},
		"fe, metadata in a directory of another claim: that":     {frontend(claim("all", feHome)), kept("all", feHome), ""},
		"fe, logs on an emptyDir, metadata on a claim: metadata": {frontend(emptyDir("l", feLog), claim("m", feMeta)), kept("m", feMeta), ""},
		"fe, everything on emptyDirs: none":                      {frontend(emptyDir("l", feLog), emptyDir("m", feMeta)), nil, ""},
		"fe, no volumes at all: none":                            {frontend(), nil, ""},
		"fe, a claim somewhere else: none":                       {frontend(claim("x", "/data/x")), nil, ""},
		"fe, a path that only begins alike: none":                {frontend(claim("x", feMeta+"-old")), nil, ""},
		"be, claim for logs and data: that of the logs":          {backend(claim("d", beData), claim("l", beLog)), kept("l", beLog), ""},
		"be, claim for data only: that":                          {backend(claim("d", beData)), kept("d", beData), ""},
		"be, first data directory not safe: the second": {
			Component{Kind: Backend, Name: "be", Field: "spec.beSpec", DataDirs: []string{"/d1", "/d2"}, Mounts: []Mount{emptyDir("a", "/d1"), claim("b", "/d2")}},
			kept("b", "/d2"), "",
		},
		"be, read-only logs: the data":           {backend(claim("l", beLog, readOnly), claim("d", beData)), kept("d", beData), ""},
		"be, only a read-only claim: none":       {backend(claim("d", beData, readOnly)), nil, ""},
		"be, subPath: kept as a prefix":          {backend(claim("d", beData, subPath("shop/be"))), &Record{State: Kept, Volume: "d", MountPath: beData, SubPath: "shop/be"}, ""},
		"be, subPathExpr: none":                  {backend(claim("d", beData, expr)), nil, ""},
		"be, subPathExpr on logs, data: data":    {backend(claim("l", beLog, expr), claim("d", beData)), kept("d", beData), ""},
		"be, shared claim for logs: that":        {backend(claim("shared", beLog)), kept("shared", beLog), ""},
		"be, the claim is the file cache: none":  {cached(backend(claim("d", beData)), beData), nil, ""},
		"be, file cache inside the claim: none":  {cached(backend(claim("d", beData)), beData+"/cache"), nil, ""},
		"be, claim inside the file cache: none":  {cached(backend(claim("d", beData)), beHome), nil, ""},
		"be, cache only, and logs: the logs":     {cached(backend(claim("c", "/cache"), claim("l", beLog)), "/cache"), kept("l", beLog), ""},
		"be, file cache elsewhere: does not say": {cached(backend(claim("d", beData)), "/cache"), kept("d", beData), ""},
		"be, cache only in the cloud: none": {
			cached(Component{Kind: Backend, Name: "cg1", Field: "spec.computeGroups[0]", LogDir: beLog, Mounts: []Mount{claim("c", "/cache")}}, "/cache"), nil, "",
		},
		"be, names a directory on a claim: its own business": {names(backend(claim("d", beData)), beData+"/conf"), &Record{State: UserManaged}, ""},
		"be, names a directory of the image: refused":        {names(backend(claim("d", beData)), "/tmp/conf"), nil, ReasonPathNotDurable},
		"be, names one on an emptyDir: refused":              {names(backend(emptyDir("d", beData)), beData), nil, ReasonPathNotDurable},
		"be, names one on a read-only claim: refused":        {names(backend(claim("d", beData, readOnly)), beData), nil, ReasonPathNotDurable},
		"be, names one in the file cache: refused":           {names(cached(backend(claim("d", beData)), beData), beData+"/conf"), nil, ReasonPathNotDurable},
		"be, names the default: as if it did not":            {names(backend(claim("d", beData)), beHome+"/conf/"), kept("d", beData), ""},
		"be, a claim is mounted where they would be, and named: its own business": {
			names(backend(claim("d", beData), claim("own", Directory)), Directory), &Record{State: UserManaged}, "",
		},
		"be, a claim is mounted where they would be: none": {backend(claim("d", beData), claim("own", Directory)), nil, ""},
		"be, names the place that is used anyway":          {names(backend(claim("d", beData)), Directory), kept("d", beData), ""},
		"ms, claim for logs: that": {
			Component{Kind: Meta, Name: "ms", LogDir: ms.LogDir, Mounts: []Mount{claim("ms-log", ms.LogDir)}}, kept("ms-log", ms.LogDir), "",
		},
		"ms, emptyDir for logs: none": {Component{Kind: Meta, Name: "ms", LogDir: ms.LogDir, Mounts: []Mount{emptyDir("ms-log", ms.LogDir)}}, nil, ""},
		"ms, names a file on a claim: its own business": {
			Component{Kind: Meta, Name: "ms", Custom: "/keep/ms.conf", Mounts: []Mount{claim("k", "/keep")}}, &Record{State: UserManaged}, "",
		},
		"ms, names the file that is used anyway": {
			Component{Kind: Meta, Name: "ms", Custom: Directory + "/ms_custom.conf", LogDir: ms.LogDir, Mounts: []Mount{claim("l", ms.LogDir)}}, kept("l", ms.LogDir), "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []Policy{Automatic, Enabled} {
				want, said := test.record, ""
				switch {
				case test.refused != "":
					want, said = nil, refuses(test.refused)
				case test.record == nil && policy == Enabled:
					said = refuses(ReasonStorageUnavailable)
				case test.record == nil:
					want, said = &Record{State: Unavailable}, warns(ReasonStorageUnavailable)
				}
				got, findings := policy.Decide(test.component)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: record (-want +got):\n%s", policy, diff)
				}
				if told(findings) != said {
					t.Errorf("%s: said %q, want %q", policy, told(findings), said)
				}
			}
			for _, policy := range []Policy{Legacy, Disabled} {
				if got, findings := policy.Decide(test.component); got != nil || len(findings) > 0 {
					t.Errorf("%s: %v and %q: want nothing", policy, got, told(findings))
				}
			}
		})
	}
}

// TestDecideExisting holds that what was chosen for a component is never chosen anew.
func TestDecideExisting(t *testing.T) {
	t.Parallel()
	beLog, beData := beHome+"/log", beHome+"/storage"
	there := func(c Component, r *Record) Component {
		c.Exists, c.Record = true, r
		return c
	}
	tests := map[string]struct {
		component Component
		// said under each policy; the record stays in all of them.
		said map[Policy]string
	}{
		"never kept anything, and has a claim: stays, and is refused where it must be kept": {
			there(backend(claim("d", beData)), nil),
			map[Policy]string{Enabled: refuses(ReasonMigrationNeeded)},
		},
		"was made without a safe volume, which came later: stays": {
			there(backend(claim("d", beData)), &Record{State: Unavailable}),
			map[Policy]string{
				Automatic: warns(ReasonStorageUnavailable), Legacy: warns(ReasonStorageUnavailable),
				Disabled: warns(ReasonStorageUnavailable), Enabled: refuses(ReasonMigrationNeeded),
			},
		},
		"keeps them on the data, and a volume for logs came later: stays": {
			there(backend(claim("d", beData), claim("l", beLog)), kept("d", beData)), nil,
		},
		"the volume is gone: refused": {
			there(backend(), kept("d", beData)), always(refuses(ReasonStorageChanged)),
		},
		"the volume is mounted elsewhere: refused": {
			there(backend(claim("d", "/data")), kept("d", beData)), always(refuses(ReasonStorageChanged)),
		},
		"the volume has another subPath: refused": {
			there(backend(claim("d", beData, subPath("x"))), kept("d", beData)), always(refuses(ReasonStorageChanged)),
		},
		"the volume became an emptyDir: refused": {
			there(backend(emptyDir("d", beData)), kept("d", beData)), always(refuses(ReasonStorageChanged)),
		},
		"the volume became read-only: refused": {
			there(backend(claim("d", beData, readOnly)), kept("d", beData)), always(refuses(ReasonStorageChanged)),
		},
		"the volume became a file cache: refused": {
			there(cached(backend(claim("d", beData)), beData), kept("d", beData)), always(refuses(ReasonStorageChanged)),
		},
		"the configuration names another directory: refused": {
			there(names(backend(claim("d", beData)), beData+"/conf"), kept("d", beData)), always(refuses(ReasonStorageChanged)),
		},
		"the configuration names the default: ours counts": {
			there(names(backend(claim("d", beData)), beHome+"/conf"), kept("d", beData)), nil,
		},
		"another volume is mounted where they are: refused": {
			there(backend(claim("d", beData), claim("own", Directory)), kept("d", beData)), always(refuses(ReasonStorageChanged)),
		},
		"manages them itself: stays": {
			there(names(backend(claim("d", beData)), beData+"/conf"), &Record{State: UserManaged}), nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []Policy{Automatic, Legacy, Disabled, Enabled} {
				got, findings := policy.Decide(test.component)
				if got != test.component.Record {
					t.Errorf("%s: the record became %v", policy, got)
				}
				if told(findings) != test.said[policy] {
					t.Errorf("%s: said %q, want %q", policy, told(findings), test.said[policy])
				}
			}
		})
	}
}

func always(said string) map[Policy]string {
	return map[Policy]string{Automatic: said, Legacy: said, Disabled: said, Enabled: said}
}

// TestFindingsSayWhatToDo holds that everything said names a field, and never ends
// without a way on.
func TestFindingsSayWhatToDo(t *testing.T) {
	t.Parallel()
	component := backend(emptyDir("d", beHome+"/storage"))
	var all []plan.Finding
	for _, p := range []Policy{Automatic, Enabled} {
		_, found := p.Decide(component)
		all = append(all, found...)
	}
	for _, f := range all {
		if !strings.HasPrefix(f.Field, "spec.") || !strings.Contains(f.Message, beHome+"/log") || !strings.Contains(f.Message, beHome+"/storage") {
			t.Errorf("%v names not all of its field and what was looked at", f)
		}
	}
	if !slices.ContainsFunc(all, func(f plan.Finding) bool { return strings.Contains(f.Message, "spec.beSpec.persistentVolumes") }) {
		t.Error("nothing says where a volume goes")
	}
}
