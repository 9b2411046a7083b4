package config

import (
	"errors"
	"fmt"
	"time"
)

// Layer is where the value of an option comes from, the weakest first.
type Layer string

// The layers.
const (
	BuiltIn     Layer = "built-in"
	FromFile    Layer = "file"
	OfNamespace Layer = "file, for the namespace"
	Annotated   Layer = "annotation"
	Environment Layer = "environment"
	Flag        Layer = "flag"
)

// Sources are all layers but the file, which may change.
type Sources struct {
	Table    []Option
	Defaults Settings
	// Flags are the values of the command line; Changed tells which of them
	// somebody has set.
	Flags   Settings
	Changed func(flag string) bool
	Env     func(name string) (value string, set bool)
}

// Effective are the settings that are in force, and where each comes from.
type Effective struct {
	Settings

	From map[string]Layer // by key
	// Overridden are the keys that the file sets to another value than the one
	// in force, in the order of the table.
	Overridden []string

	namespaces map[string]map[string]string
}

// Resource are the options of one custom resource.
type Resource struct {
	RollPause, DatabaseInterval time.Duration
	// Faults say which annotations are not followed and why, in order.
	Faults []string
}

// For decides the options of a custom resource. An annotation that says nothing
// that can be followed leaves the option to the weaker layers.
func (e Effective) For(table []Option, namespace string, annotations map[string]string) Resource {
	var r Resource
	s := e.Settings
	for _, o := range table {
		if !o.Resource {
			continue
		}
		text, _, err := o.forResource(o.field(&s).String(), e.From[o.Key()], e.namespaces[namespace], annotations)
		if err != nil {
			r.Faults = append(r.Faults, fmt.Sprintf("%s %s", o.Annotation(), err))
		}
		_ = o.field(&s).Set(text) // it was checked where it was read
	}
	r.RollPause, r.DatabaseInterval = s.RollPause, s.DatabaseInterval
	return r
}

// forResource decides an option for a custom resource from what holds for the
// operator, what the file says for the namespace, and the annotations.
func (o Option) forResource(text string, from Layer, namespace, annotations map[string]string) (string, Layer, error) {
	var fault error
	wanted, annotated := annotations[o.Annotation()]
	if annotated {
		var s Settings
		if fault = o.field(&s).Set(wanted); fault == nil {
			fault = o.field(&s).check(o)
		}
	}
	said, has := namespace[o.Key()]
	switch {
	case from == Flag || from == Environment:
		return text, from, fault
	case annotated && fault == nil:
		return wanted, Annotated, nil
	case has:
		return said, OfNamespace, fault
	}
	return text, from, fault
}

// Effective decides every option. The file may be nil.
func (s Sources) Effective(file *File) (Effective, error) {
	e := Effective{From: make(map[string]Layer, len(s.Table))}
	if file != nil {
		e.namespaces = file.namespaces
	}
	var errs []error
	for _, o := range s.Table {
		layer, err := s.decide(o, file, &e.Settings)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e.From[o.Key()] = layer
		if file.Sets(o) && !o.same(e.Settings, file.settings) {
			e.Overridden = append(e.Overridden, o.Key())
		}
	}
	return e, errors.Join(errs...)
}

func (s Sources) decide(o Option, file *File, to *Settings) (Layer, error) {
	field := o.field(to)
	if s.Changed(o.Flag) {
		o.copy(to, &s.Flags)
		if err := field.check(o); err != nil {
			return "", fmt.Errorf("--%s %w", o.Flag, err)
		}
		return Flag, nil
	}
	if text, ok := s.Env(o.Env()); ok {
		err := field.Set(text)
		if err == nil {
			err = field.check(o)
		}
		if err != nil {
			return "", fmt.Errorf("environment variable %s %w", o.Env(), err)
		}
		return Environment, nil
	}
	if file.Sets(o) {
		o.copy(to, &file.settings)
		return FromFile, nil
	}
	o.copy(to, &s.Defaults)
	return BuiltIn, nil
}
