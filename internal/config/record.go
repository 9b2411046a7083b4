package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Record is what an operator tells of itself, in a ConfigMap, for the kubectl
// plugin to read. It holds nothing secret.
type Record struct {
	Version string `json:"version"`
	// Leader is the Pod that wrote it, and Lease what says who leads now; both are
	// empty where there is no election.
	Leader string `json:"leader,omitempty"`
	Lease  string `json:"lease,omitempty"`
	// File is where the configuration was read; empty where there is no file.
	File string `json:"file,omitempty"`
	// Refused says why the file is not in force as it is, with lines.
	Refused []string `json:"refused,omitempty"`
	// Options are all, in the order of the documentation.
	Options []Row `json:"options"`
	// Namespaces are the options that the file sets for namespaces.
	Namespaces map[string]map[string]string `json:"perNamespace,omitempty"`
}

// Row is an option as it is.
type Row struct {
	Option string `json:"option"`
	Class  Class  `json:"class"`
	Value  string `json:"value"`
	From   Layer  `json:"from"`
	// NeedsRestart says that the file has another value now, Wanted, which is in
	// force after a restart.
	NeedsRestart bool   `json:"needsRestart,omitempty"`
	Wanted       string `json:"wanted,omitempty"`
	// Overridden says that the file sets it, too, and is not followed.
	Overridden bool `json:"overridden,omitempty"`
}

// RecordKey is the key of a record in its ConfigMap, and RecordLabel the label by
// which ConfigMaps with one are found.
const (
	RecordKey   = "operator.json"
	RecordLabel = "fairlead.dev/operator-record"
)

// RecordName is the name of the ConfigMap of an operator: operators that share a
// namespace have leases of different names.
func RecordName(lease string) string { return lease + "-operator" }

// Record is what there is to tell of the configuration.
func (w *Watcher) Record() Record {
	s := w.State()
	r := Record{File: w.Path, Refused: s.Refused, Namespaces: maps.Clone(s.namespaces)}
	for _, o := range w.Sources.Table {
		wanted, pending := s.Wanted[o.Key()]
		r.Options = append(r.Options, Row{
			Option: o.Key(), Class: o.Class, Value: o.shown(s.Settings), From: s.From[o.Key()],
			NeedsRestart: pending, Wanted: wanted, Overridden: slices.Contains(s.Overridden, o.Key()),
		})
	}
	maps.DeleteFunc(r.Namespaces, func(_ string, said map[string]string) bool { return len(said) == 0 })
	if len(r.Namespaces) == 0 {
		r.Namespaces = nil
	}
	return r
}

// Encode is the text of a record.
func (r Record) Encode() (string, error) {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", fmt.Errorf("encoding the record of the operator: %w", err)
	}
	return string(text) + "\n", nil
}

// Decode reads the text of a record. Fields of a newer operator are passed over.
func Decode(text string) (Record, error) {
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("reading the record of the operator: %w", err)
	}
	return r, nil
}

// Pending are the options that need a restart.
func (r Record) Pending() []string {
	var out []string
	for _, o := range r.Options {
		if o.NeedsRestart {
			out = append(out, o.Option)
		}
	}
	return out
}

// For is the record with the options as they are for a custom resource, and the
// faults of its annotations.
func (r Record) For(table []Option, namespace string, annotations map[string]string) (rows []Row, faults []string) {
	rows = slices.Clone(r.Options)
	for i, row := range rows {
		at := slices.IndexFunc(table, func(o Option) bool { return o.Key() == row.Option && o.Resource })
		if at < 0 {
			continue
		}
		text, from, err := table[at].forResource(row.Value, row.From, r.Namespaces[namespace], annotations)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s %s", table[at].Annotation(), err))
		}
		rows[i].Value, rows[i].From = text, from
	}
	return rows, faults
}
