package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// none are sources without flags and environment.
func none() Sources {
	return Sources{
		Table: Table(systems), Defaults: Defaults(systems),
		Changed: func(string) bool { return false },
		Env:     func(string) (string, bool) { return "", false },
	}
}

func parsed(t *testing.T, text string) *File {
	t.Helper()
	file, err := Parse("f", []byte(head+text), Table(systems))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLayers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, env, flag string
		want            string
		from            Layer
		overridden      []string
	}{
		"nothing is said: built in":            {"", "", "", "info", BuiltIn, nil},
		"the file says it":                     {"debug", "", "", "debug", FromFile, nil},
		"the environment beats the file":       {"debug", "warn", "", "warn", Environment, []string{"logLevel"}},
		"a flag beats both":                    {"debug", "warn", "error", "error", Flag, []string{"logLevel"}},
		"a flag that agrees overrides nothing": {"debug", "", "debug", "debug", Flag, nil},
		"the environment without file":         {"", "warn", "", "warn", Environment, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := none()
			s.Flags.LogLevel = test.flag
			s.Changed = func(f string) bool { return f == "log-level" && test.flag != "" }
			s.Env = func(n string) (string, bool) { return test.env, n == "FAIRLEAD_LOG_LEVEL" && test.env != "" }
			var file *File
			if test.file != "" {
				file = parsed(t, "logLevel: "+test.file+"\n")
			}
			e, err := s.Effective(file)
			if err != nil {
				t.Fatal(err)
			}
			if e.LogLevel != test.want || e.From["logLevel"] != test.from {
				t.Errorf("logLevel is %q from %q, want %q from %q", e.LogLevel, e.From["logLevel"], test.want, test.from)
			}
			if diff := cmp.Diff(test.overridden, e.Overridden); diff != "" {
				t.Error(diff)
			}
			e.LogLevel = "info"
			if diff := cmp.Diff(Defaults(systems), e.Settings); diff != "" {
				t.Errorf("other options moved: %s", diff)
			}
		})
	}
}

func TestBadFlagsAndEnvironmentAreRefusedByName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env  map[string]string
		flag string
		want string
	}{
		"a flag":                      {nil, "loud", `--log-level is "loud"; write debug, info, warn or error`},
		"a variable":                  {map[string]string{"FAIRLEAD_WORKERS": "x"}, "", `environment variable FAIRLEAD_WORKERS is "x"; write a whole number`},
		"an empty variable":           {map[string]string{"FAIRLEAD_LOG_LEVEL": ""}, "", `environment variable FAIRLEAD_LOG_LEVEL is ""; write debug, info, warn or error`},
		"a proxy, without its value":  {map[string]string{"FAIRLEAD_DIAL_VIA": "ftp://me:hunter2@p"}, "", `environment variable FAIRLEAD_DIAL_VIA is not what it should be; write socks5://host:port`},
		"both faults, in table order": {map[string]string{"FAIRLEAD_SYSTEMS": ""}, "loud", "environment variable FAIRLEAD_SYSTEMS is empty; write some of doriscluster, cacheruntime\n" + `--log-level is "loud"; write debug, info, warn or error`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := none()
			s.Flags.LogLevel = test.flag
			s.Changed = func(f string) bool { return f == "log-level" && test.flag != "" }
			s.Env = func(n string) (string, bool) { v, ok := test.env[n]; return v, ok }
			_, err := s.Effective(nil)
			if err == nil || err.Error() != test.want {
				t.Fatalf("got %v, want %s", err, test.want)
			}
		})
	}
}

// A proxy with a password may come by the environment, from a Secret.
func TestPasswordOfTheProxyComesByTheEnvironment(t *testing.T) {
	t.Parallel()
	s := none()
	s.Env = func(n string) (string, bool) { return "socks5://me:hunter2@p:1080", n == "FAIRLEAD_DIAL_VIA" }
	e, err := s.Effective(nil)
	if err != nil || e.DialVia != "socks5://me:hunter2@p:1080" {
		t.Fatalf("got %q, %v", e.DialVia, err)
	}
}

func TestNamesOfOptions(t *testing.T) {
	t.Parallel()
	for _, o := range Table(systems) {
		if o.Flag == "health-probe-bind-address" && (o.Key() != "healthProbeBindAddress" || o.Env() != "FAIRLEAD_HEALTH_PROBE_BIND_ADDRESS") {
			t.Errorf("got %s, %s", o.Key(), o.Env())
		}
		defaults := Defaults(systems)
		if err := o.field(&defaults).check(o); err != nil {
			t.Errorf("the default of %s %v", o.Key(), err)
		}
		if o.Help == "" || o.Class != Startup && o.Class != Dynamic {
			t.Errorf("%s lacks a help line or a class", o.Key())
		}
	}
}

// What a value writes it reads, so that text is enough to copy and to compare it.
func TestValuesReadWhatTheyWrite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := Settings{
			Systems:     rapid.SliceOf(rapid.StringMatching("[a-z]{1,8}")).Draw(t, "systems"),
			LeaderElect: rapid.Bool().Draw(t, "leaderElect"),
			LogLevel:    rapid.String().Draw(t, "logLevel"),
			Workers:     rapid.Int().Draw(t, "workers"),
			RollPause:   time.Duration(rapid.Int64().Draw(t, "rollPause")),
		}
		if len(from.Systems) == 0 {
			from.Systems = nil
		}
		to := Settings{Systems: []string{"x"}, LeaderElect: true, LogLevel: "x", Workers: 7, RollPause: 7}
		for _, o := range Table(systems) {
			o.copy(&to, &from)
			if !o.same(to, from) {
				t.Errorf("%s is %q, and %q when it is read again", o.Key(), o.field(&from), o.field(&to))
			}
		}
		if diff := cmp.Diff(from, to); diff != "" {
			t.Errorf("-from +to:\n%s", diff)
		}
	})
}
