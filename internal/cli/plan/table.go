package plan

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// table prints a plan for people: the summary first, then what there is to know
// about the input, then every change, then what happens first.
func table(out io.Writer, r Result) error {
	linef(out, "%s %s/%s: %s", r.Kind, r.Namespace, r.Name, summary(r.Plan))
	for _, f := range r.Findings {
		linef(out, "  %-11s %s", f.Severity, f.String())
	}
	if len(r.Changes) > 0 {
		linef(out, "")
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		linef(w, "  OBJECT\tFIELD\tFROM\tTO\tCAUSE\tEFFECT\tVERDICT")
		for _, c := range r.Changes {
			linef(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s", c.Object, dash(c.Path), dash(short(c.From)), dash(short(c.To)), c.Cause, c.Effect, verdict(c))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if len(r.Next) > 0 {
		linef(out, "")
		linef(out, "  First:")
		for _, n := range r.Next {
			linef(out, "    %s", n)
		}
	}
	return nil
}

func verdict(c plan.Change) string {
	if c.Reason == "" {
		return string(c.Verdict)
	}
	return fmt.Sprintf("%s (%s)", c.Verdict, c.Reason)
}

func dash(v string) string {
	if v == "" {
		return "-"
	}
	return v
}

func summary(p plan.Plan) string {
	if len(p.Refused()) > 0 {
		return "refused; nothing would be changed"
	}
	if len(p.Changes) == 0 {
		return "nothing to do"
	}
	pods, held := 0, 0
	for _, c := range p.Changes {
		if c.Object.Kind == "Pod" && c.Verdict != plan.VerdictHold {
			pods++
		}
		if c.Verdict == plan.VerdictHold {
			held++
		}
	}
	s := fmt.Sprintf("%d changes", len(p.Changes))
	if len(p.Changes) == 1 {
		s = "1 change"
	}
	s += fmt.Sprintf(", %d Pods restarted", pods)
	if held > 0 {
		s += fmt.Sprintf(", %d held until approved", held)
	}
	return s
}
