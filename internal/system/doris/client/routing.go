package client

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// Routing is what a backend gets of the work: nil leaves it as it is.
type Routing struct {
	DisableQuery, DisableLoad *bool
}

// Route says what a backend gets of the work. Queries and loads that it has begun go
// on. It is kept by the frontends: a backend that starts again has it still.
func (d *Doris) Route(ctx context.Context, at Node, member Node, r Routing) error {
	op := "route the work of " + member.String()
	if !member.valid() {
		return &Error{Op: op, Node: at, Kind: ErrInput, Text: "the host or port of the member is not valid"}
	}
	set := ""
	for _, property := range []struct {
		name  string
		value *bool
	}{{"disable_query", r.DisableQuery}, {"disable_load", r.DisableLoad}} {
		switch {
		case property.value == nil:
			continue
		case set != "":
			set += ", "
		}
		value := "false"
		if *property.value {
			value = "true"
		}
		set += `"` + property.name + `" = "` + value + `"`
	}
	if set == "" {
		return nil
	}
	_, err := d.query(ctx, at, statement{op: op, sql: `ALTER SYSTEM MODIFY BACKEND "` + sqlText(member.String()) + `" SET (` + set + ")"})
	return err
}

// SetTags gives a backend these tags and no others: Doris replaces them all by what a
// statement says, and wants a location in it.
func (d *Doris) SetTags(ctx context.Context, at Node, member Node, tags map[string]string) error {
	op := "set the tags of " + member.String()
	if !member.valid() {
		return &Error{Op: op, Node: at, Kind: ErrInput, Text: "the host or port of the member is not valid"}
	}
	if tags["location"] == "" {
		return &Error{Op: op, Node: at, Kind: ErrInput, Text: "the tags have no location"}
	}
	var set []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		set = append(set, `"tag.`+sqlText(key)+`" = "`+sqlText(tags[key])+`"`)
	}
	_, err := d.query(ctx, at, statement{op: op, sql: `ALTER SYSTEM MODIFY BACKEND "` + sqlText(member.String()) + `" SET (` + strings.Join(set, ", ") + ")"})
	return err
}
