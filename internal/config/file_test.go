package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var systems = []string{"doriscluster", "cacheruntime"}

const head = "apiVersion: config.fairlead.dev/v1alpha1\nkind: OperatorConfiguration\n"

func TestParseRefusesWithLineAndReason(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		content string
		want    string // the whole error
	}{
		"empty file":                        {"", "f: is empty; write at least apiVersion: config.fairlead.dev/v1alpha1 and kind: OperatorConfiguration"},
		"text that is no mapping":           {"hello", "f: is no mapping of options to values"},
		"a second document":                 {head + "---\n" + head, "f: has more than one document, or text after it that is no YAML"},
		"no header":                         {"logLevel: info\n", "f:1: apiVersion is missing; write apiVersion: config.fairlead.dev/v1alpha1\nf:1: kind is missing; write kind: OperatorConfiguration"},
		"a version of later":                {strings.Replace(head, "v1alpha1", "v2", 1), `f:1: apiVersion is "config.fairlead.dev/v2"; this operator reads config.fairlead.dev/v1alpha1`},
		"unknown option in other case":      {head + "loglevel: info\n", `f:3: unknown option "loglevel"; write logLevel`},
		"option by the name of its flag":    {head + "log-level: info\n", `f:3: unknown option "log-level"; write logLevel`},
		"unknown option":                    {head + "colour: red\n", `f:3: unknown option "colour"; known are databaseInterval, dialVia, healthProbeBindAddress, leaderElect, leaderElectName, leaderElectNamespace, logFormat, logLevel, metricsBindAddress, namespaces, rollPause, systems, workers`},
		"value outside a choice":            {head + "logLevel: loud\n", `f:3: logLevel is "loud"; write debug, info, warn or error`},
		"number as text":                    {head + "workers: many\n", `f:3: workers is "many"; write a whole number`},
		"number in quotes":                  {head + "workers: \"16\"\n", `f:3: workers is "16"; write a whole number`},
		"number too small":                  {head + "workers: 0\n", "f:3: workers is 0; write 1 or more"},
		"yes for a boolean":                 {head + "leaderElect: yes\n", `f:3: leaderElect is "yes"; write true or false`},
		"a number for a text":               {head + "logLevel: 3\n", "f:3: logLevel is 3, which is no text; put it in quotes"},
		"null":                              {head + "logLevel:\n", "f:3: logLevel has no value; leave the line out for the default"},
		"a mapping for a value":             {head + "logLevel: {a: b}\n", "f:3: logLevel is no single value"},
		"text for a list":                   {head + "namespaces: a,b\n", "f:3: namespaces is no list; write [a, b]"},
		"a list with a number":              {head + "namespaces:\n- a\n- 3\n", "f:4: namespaces has an item in line 5 that is no text"},
		"a namespace that cannot be":        {head + "namespaces: [A_b]\n", `f:3: namespaces names "A_b"; write names of namespaces`},
		"an empty namespace":                {head + "namespaces: ['']\n", `f:3: namespaces names ""; write names of namespaces`},
		"a namespace twice":                 {head + "namespaces: [a, a]\n", `f:3: namespaces names "a" twice`},
		"an unknown system":                 {head + "systems: [oracle]\n", `f:3: systems names "oracle"; write doriscluster or cacheruntime`},
		"no systems":                        {head + "systems: []\n", "f:3: systems is empty; write some of doriscluster, cacheruntime"},
		"an option twice":                   {head + "workers: 2\nworkers: 3\n", "f:4: workers is set twice, first in line 3"},
		"a proxy of another kind, unquoted": {head + "dialVia: http://me:hunter2@p:1\n", "f:3: dialVia is not what it should be; write socks5://host:port"},
		"a password in the file, unquoted":  {head + "dialVia: socks5://me:hunter2@p:1\n", "f:3: dialVia names a user; a password has no place in this file: set the environment variable FAIRLEAD_DIAL_VIA from a Secret"},
		"an address without port":           {head + "metricsBindAddress: localhost\n", `f:3: metricsBindAddress is "localhost"; write host:port, :port, or 0 for none`},
		"all faults at once, by line":       {head + "workers: 0\ncolor: x\nlogFormat: xml\n", "f:3: workers is 0; write 1 or more\nf:4: unknown option \"color\"; known are databaseInterval, dialVia, healthProbeBindAddress, leaderElect, leaderElectName, leaderElectNamespace, logFormat, logLevel, metricsBindAddress, namespaces, rollPause, systems, workers\nf:5: logFormat is \"xml\"; write json or text"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := Parse("f", []byte(test.content), Table(systems))
			if err == nil {
				t.Fatalf("taken: %+v", file)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestParseTakesEveryOption(t *testing.T) {
	t.Parallel()
	file, err := Parse("f", []byte(head+`
systems: [cacheruntime]
namespaces: [a, b]
leaderElect: true
leaderElectName: mine
leaderElectNamespace: there
metricsBindAddress: "0"
healthProbeBindAddress: 127.0.0.1:9
logFormat: text
logLevel: debug
dialVia: socks5://proxy:1080
workers: 3
rollPause: 1m30s
databaseInterval: 2m
`), Table(systems))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Systems: []string{"cacheruntime"}, Namespaces: []string{"a", "b"},
		LeaderElect: true, LeaderElectName: "mine", LeaderElectNamespace: "there",
		MetricsBindAddress: "0", HealthProbeBindAddress: "127.0.0.1:9",
		LogFormat: "text", LogLevel: "debug", DialVia: "socks5://proxy:1080", Workers: 3,
		RollPause: 90 * time.Second, DatabaseInterval: 2 * time.Minute,
	}
	if diff := cmp.Diff(want, file.settings); diff != "" {
		t.Fatal(diff)
	}
	for _, o := range Table(systems) {
		if !file.Sets(o) {
			t.Errorf("%s is in the file and not known to be", o.Key())
		}
	}
}

// What the parser takes, the operator may run with: each value passes the
// check again. What it refuses, it refuses with a reason.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", head, head + "workers: 3\n", head + "namespaces: [a]\n", head + "a: &x 1\nworkers: *x\n", head + "<<: {workers: 2}\n", "? [a]\n: b\n"} {
		f.Add([]byte(seed))
	}
	table := Table(systems)
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Parse("f", content, table)
		if err != nil {
			if file != nil || err.Error() == "" {
				t.Fatalf("refused with %q and a file %v", err, file)
			}
			return
		}
		for _, o := range table {
			if !file.Sets(o) {
				continue
			}
			if err := o.field(&file.settings).check(o); err != nil {
				t.Fatalf("%s was taken and %v", o.Key(), err)
			}
		}
	})
}
