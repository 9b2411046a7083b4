package config

import (
	"strings"
	"time"
	"unicode"

	"github.com/fairlead-dev/fairlead/api/meta"
)

// Class says what it takes for a changed option to be in force.
type Class string

// An option is either read once, at start, or followed while the operator runs.
const (
	Startup Class = "startup"
	Dynamic Class = "dynamic"
)

// Settings are the values of all options.
type Settings struct {
	Systems, Namespaces                        []string
	LeaderElect                                bool
	LeaderElectName, LeaderElectNamespace      string
	MetricsBindAddress, HealthProbeBindAddress string
	LogFormat, LogLevel                        string
	DialVia                                    string
	Workers                                    int
	// RollPause and DatabaseInterval are those of resources for which nothing else
	// is said.
	RollPause, DatabaseInterval time.Duration
}

// Option is one row of the table.
type Option struct {
	// Flag is the name of the option on the command line; Key and Env derive
	// from it.
	Flag  string
	Class Class
	// Help is one line for people.
	Help string
	// Values are what may be written, where that is a choice (for a list: in it).
	Values []string
	// Item is a regular expression for a value, or for each item of a list.
	Item string
	// Min is the least number that may be written.
	Min int
	// Wanted says in words what the value may be.
	Wanted string
	// Secret says that the value may hold a password: nothing prints it, and a
	// file may not hold one with a password.
	Secret bool
	// NonEmpty refuses an empty list or text.
	NonEmpty bool
	// Resource says that a file may set it for a namespace too, and an annotation
	// for one custom resource. Such an option is dynamic.
	Resource bool
	// Shortest and Longest bound a duration.
	Shortest, Longest time.Duration

	field func(*Settings) Value
}

// Key is the name of the option in a file.
func (o Option) Key() string {
	var b strings.Builder
	for i, word := range strings.Split(o.Flag, "-") {
		if i > 0 {
			word = string(unicode.ToUpper(rune(word[0]))) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

// Env is the name of the environment variable of the option.
func (o Option) Env() string {
	return "FAIRLEAD_" + strings.ToUpper(strings.ReplaceAll(o.Flag, "-", "_"))
}

// Annotation is the annotation of a custom resource that sets the option for it;
// empty where none does.
func (o Option) Annotation() string {
	if !o.Resource {
		return ""
	}
	return meta.Prefix + o.Flag
}

// Field is the option's value in s.
func (o Option) Field(s *Settings) Value { return o.field(s) }

// same reports whether the option has one value in both.
func (o Option) same(a, b Settings) bool { return o.field(&a).String() == o.field(&b).String() }

// copy gives the option the value in to that it has in from.
func (o Option) copy(to, from *Settings) {
	_ = o.field(to).Set(o.field(from).String()) // what a value writes it reads
}

// The forms of values.
const (
	dnsLabel = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	dnsName  = `[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?`
	address  = `0|([A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}`
	proxyURL = `socks5h?://([^@/?#]*@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}`
)

// Table lists the options in the order in which they are documented.
func Table(systems []string) []Option {
	return []Option{
		{
			Flag: "systems", Class: Startup, Values: systems, NonEmpty: true,
			Help:  "systems to serve; a missing custom resource definition is waited for",
			field: func(s *Settings) Value { return (*List)(&s.Systems) },
		},
		{
			Flag: "namespaces", Class: Startup, Item: dnsLabel, Wanted: "names of namespaces",
			Help:  "namespaces to work in; default: all",
			field: func(s *Settings) Value { return (*List)(&s.Namespaces) },
		},
		{
			Flag: "leader-elect", Class: Startup,
			Help:  "let only one of several operators work at a time",
			field: func(s *Settings) Value { return (*toggle)(&s.LeaderElect) },
		},
		{
			Flag: "leader-elect-name", Class: Startup, Item: dnsName, Wanted: "the name of a lease", NonEmpty: true,
			Help:  "name of the lease; installations that share a namespace need one each",
			field: func(s *Settings) Value { return (*text)(&s.LeaderElectName) },
		},
		{
			Flag: "leader-elect-namespace", Class: Startup, Item: dnsLabel, Wanted: "the name of a namespace",
			Help:  "namespace of the lease; default: that of the Pod",
			field: func(s *Settings) Value { return (*text)(&s.LeaderElectNamespace) },
		},
		{
			Flag: "metrics-bind-address", Class: Startup, Item: address, Wanted: "host:port, :port, or 0 for none", NonEmpty: true,
			Help:  "address of /metrics; 0 for none",
			field: func(s *Settings) Value { return (*text)(&s.MetricsBindAddress) },
		},
		{
			Flag: "health-probe-bind-address", Class: Startup, Item: address, Wanted: "host:port, :port, or 0 for none", NonEmpty: true,
			Help:  "address of /healthz and /readyz; 0 for none",
			field: func(s *Settings) Value { return (*text)(&s.HealthProbeBindAddress) },
		},
		{
			Flag: "log-format", Class: Startup, Values: []string{"json", "text"},
			Help:  "json or text",
			field: func(s *Settings) Value { return (*text)(&s.LogFormat) },
		},
		{
			Flag: "log-level", Class: Dynamic, Values: []string{"debug", "info", "warn", "error"},
			Help:  "debug, info, warn or error",
			field: func(s *Settings) Value { return (*text)(&s.LogLevel) },
		},
		{
			Flag: "dial-via", Class: Startup, Item: proxyURL, Wanted: "socks5://host:port", Secret: true,
			Help:  "how to reach the data systems from outside the cluster: socks5://host:port; default: directly",
			field: func(s *Settings) Value { return (*text)(&s.DialVia) },
		},
		{
			Flag: "workers", Class: Startup, Min: 1,
			Help:  "custom resources of one system that are reconciled at once",
			field: func(s *Settings) Value { return (*number)(&s.Workers) },
		},
		{
			Flag: "roll-pause", Class: Dynamic, Resource: true, Shortest: time.Second, Longest: time.Hour,
			Help:  "how long the first Pod of a component that was replaced is watched before the next one goes, and all of them before another component begins",
			field: func(s *Settings) Value { return (*length)(&s.RollPause) },
		},
		{
			Flag: "database-interval", Class: Dynamic, Resource: true, Shortest: time.Minute, Longest: time.Hour,
			Help:  "how often a database in which nothing moves is asked about its members; a little more, by which clusters are kept apart",
			field: func(s *Settings) Value { return (*length)(&s.DatabaseInterval) },
		},
	}
}

// Defaults are the built-in values.
func Defaults(systems []string) Settings {
	return Settings{
		Systems: systems, LeaderElectName: "fairlead",
		MetricsBindAddress: ":8080", HealthProbeBindAddress: ":8081",
		LogFormat: "json", LogLevel: "info", Workers: 16,
		RollPause: 10 * time.Second, DatabaseInterval: time.Minute,
	}
}
