package config

import (
	"errors"
	"fmt"
)

// Layer is where the value of an option comes from, the weakest first.
type Layer string

// The layers.
const (
	BuiltIn     Layer = "built-in"
	FromFile    Layer = "file"
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
}

// Effective decides every option. The file may be nil.
func (s Sources) Effective(file *File) (Effective, error) {
	e := Effective{From: make(map[string]Layer, len(s.Table))}
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
		copyField(field, o.field(&s.Flags))
		if err := o.check(field); err != nil {
			return "", fmt.Errorf("--%s %w", o.Flag, err)
		}
		return Flag, nil
	}
	if text, ok := s.Env(o.Env()); ok {
		err := setText(field, text)
		if err == nil {
			err = o.check(field)
		}
		if err != nil {
			return "", fmt.Errorf("environment variable %s %w", o.Env(), err)
		}
		return Environment, nil
	}
	if file.Sets(o) {
		copyField(field, o.field(&file.settings))
		return FromFile, nil
	}
	copyField(field, o.field(&s.Defaults))
	return BuiltIn, nil
}
