package self

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/config"
)

func printStatus(s screen.Screen, op Operator) {
	r := op.Record
	s.Linef("Operator %s/%s", screen.Clean(op.Namespace), screen.Clean(op.ConfigMap))
	t := screen.Table{Indent: "  "}
	line := func(title string, paint screen.Paint, text string) {
		t.Row(screen.Cell{Text: title}, screen.Cell{Text: text, Paint: paint})
	}
	line("Version", screen.Plain, r.Version)
	paint := screen.Plain
	if strings.HasPrefix(op.Leads, "nobody") {
		paint = screen.Bad
	}
	line("Leader", paint, op.Leads)
	switch {
	case r.File == "":
		line("Configuration", screen.Plain, "no file: flags, environment and what is built in")
	case len(r.Refused) > 0:
		line("Configuration", screen.Bad, r.File+" is refused; the former configuration stays in force")
		for _, fault := range r.Refused {
			line(" ", screen.Bad, fault)
		}
	case len(r.Pending()) > 0:
		line("Configuration", screen.Mind, r.File+" is in force, but for what needs a restart")
	default:
		line("Configuration", screen.Good, r.File+" is in force")
	}
	for _, row := range r.Options {
		if row.NeedsRestart {
			line("Needs restart", screen.Mind, fmt.Sprintf("%s is %s, and %s in the file", row.Option, orNothing(row.Value), orNothing(row.Wanted)))
		}
	}
	for _, row := range r.Options {
		if row.Overridden {
			line("Overridden", screen.Mind, fmt.Sprintf("%s in the file, by %s", row.Option, layer(row.From)))
		}
	}
	s.Print(t)
}

func printOptions(s screen.Screen, op Operator) {
	r := op.Record
	s.Linef("Operator %s/%s, version %s", screen.Clean(op.Namespace), screen.Clean(op.ConfigMap), screen.Clean(r.Version))
	if len(r.Refused) > 0 {
		s.Linef("  %s", s.Painted(screen.Bad, "its file is refused (kubectl fairlead status operator): this is what was in force before"))
	}
	t := screen.Table{Indent: "  "}
	t.Head("OPTION", "CLASS", "VALUE", "FROM", "NOTE")
	for _, row := range r.Options {
		note := screen.Cell{}
		switch {
		case row.NeedsRestart:
			note = screen.Cell{Text: "in the file: " + orNothing(row.Wanted) + ", after a restart", Paint: screen.Mind}
		case row.Overridden:
			note = screen.Cell{Text: "the file has another value, which is not followed", Paint: screen.Mind}
		}
		t.Row(screen.Cell{Text: row.Option}, screen.Cell{Text: string(row.Class)}, screen.Cell{Text: row.Value}, screen.Cell{Text: string(row.From)}, note)
	}
	s.Print(t)
	for _, fault := range op.Faults {
		s.Linef("  %s", s.Painted(screen.Mind, screen.Clean("not followed: annotation "+fault)))
	}
	printNamespaces(s, r)
}

func printNamespaces(s screen.Screen, r config.Record) {
	if len(r.Namespaces) == 0 {
		return
	}
	s.Linef("")
	t := screen.Table{Indent: "  "}
	t.Head("NAMESPACE", "OPTION", "VALUE")
	for _, namespace := range slices.Sorted(maps.Keys(r.Namespaces)) {
		said := r.Namespaces[namespace]
		for _, key := range slices.Sorted(maps.Keys(said)) {
			t.Row(screen.Texts(namespace, key, said[key])...)
		}
	}
	s.Print(t)
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func layer(from config.Layer) string {
	if from == config.Flag {
		return "a flag"
	}
	return "the " + string(from)
}
