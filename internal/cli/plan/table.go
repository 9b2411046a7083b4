package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Print prints a plan for people: the summary first, then what there is to know,
// the changes, what happens to each Pod, what is held and how to approve it, what
// is refused and why, what would be lost, and what happens first. With wide,
// nothing is left out.
func Print(s screen.Screen, r Result, wide bool) {
	s.Linef("%s", s.Painted(screen.Head, fmt.Sprintf("%s %s/%s: %s", r.Kind, r.Namespace, r.Name, r.Summary)))
	for _, n := range r.Notes {
		s.Linef("  Note: %s", screen.Clean(n))
	}
	printFindings(s, r.Findings)
	printChanges(s, r, wide)
	printPods(s, r.Pods)
	printHeld(s, r, wide)
	printRefused(s, r)
	printLosses(s, r)
	if len(r.Next) > 0 {
		heading(s, "First")
		for _, n := range r.Next {
			s.Linef("    %s", screen.Clean(n))
		}
	}
}

func heading(s screen.Screen, text string) {
	s.Linef("")
	s.Linef("  %s:", s.Painted(screen.Head, text))
}

func printFindings(s screen.Screen, findings []plan.Finding) {
	t := screen.Table{Indent: "  "}
	graver := map[plan.Severity]int{plan.Refusal: -2, plan.Unsupported: -1}
	sorted := slices.SortedStableFunc(slices.Values(findings), func(a, b plan.Finding) int { return graver[a.Severity] - graver[b.Severity] })
	for _, f := range sorted {
		paint := screen.Mind
		if f.Severity == plan.Refusal {
			paint = screen.Bad
		}
		t.Row(screen.Cell{Text: string(f.Severity), Paint: paint}, screen.Cell{Text: f.String()})
	}
	s.Print(t)
}

// printChanges prints what is carried out; with wide, every change there is.
func printChanges(s screen.Screen, r Result, wide bool) {
	t := screen.Table{Indent: "    "}
	titles := []string{"OBJECT", "FIELD", "FROM", "TO", "CAUSE", "EFFECT", "VERDICT"}
	if wide {
		titles = append(titles, "WHY")
	}
	t.Head(titles...)
	shown, records := 0, 0
	for _, c := range r.Changes {
		if !wide && (c.Object.Kind == "Pod" || c.Verdict == plan.VerdictHold) {
			continue // they have sections of their own
		}
		if !wide && plan.Bookkeeping(c.Path) {
			records++
			continue
		}
		shown++
		t.Row(changeRow(c, wide)...)
	}
	if shown > 0 {
		heading(s, "Changes")
		s.Print(t)
	}
	if records > 0 && shown > 0 {
		s.Linef("    %s", s.Painted(screen.Faint, "and "+screen.Many(records, "record")+" that the operator keeps for itself (-o wide)"))
	}
}

func changeRow(c plan.Change, wide bool) []screen.Cell {
	from, to := c.From, c.To
	if !wide {
		from, to = short(from), short(to)
	}
	cells := screen.Texts(c.Object.String(), c.Path, from, to, string(c.Cause))
	cells = append(cells, screen.Cell{Text: string(c.Effect), Paint: effectPaint(c.Effect)}, verdict(c))
	if wide {
		cells = append(cells, screen.Cell{Text: c.Message})
	}
	return cells
}

func verdict(c plan.Change) screen.Cell {
	cell := screen.Cell{Text: string(c.Verdict)}
	if c.Reason != "" {
		cell.Text += " (" + c.Reason + ")"
	}
	switch c.Verdict {
	case plan.VerdictApply:
		cell.Paint = screen.Good
	case plan.VerdictRefuse:
		cell.Paint = screen.Bad
	default:
		cell.Paint = screen.Mind
	}
	return cell
}

func printPods(s screen.Screen, pods []Pod) {
	t := screen.Table{Indent: "    "}
	t.Head("ORDER", "POD", "EFFECT", "CAUSE", "VERDICT", "WHY")
	for _, p := range pods {
		order := ""
		if p.Order > 0 {
			order = fmt.Sprintf("%d.", p.Order)
		}
		t.Row(
			screen.Cell{Text: order}, screen.Cell{Text: p.Name}, screen.Cell{Text: string(p.Effect), Paint: effectPaint(p.Effect)},
			screen.Cell{Text: string(p.Cause)}, verdict(plan.Change{Verdict: p.Verdict, Reason: p.Reason}), screen.Cell{Text: p.Message})
	}
	if len(pods) > 0 {
		heading(s, "Pods")
		s.Print(t)
	}
}

// shownOfSet is how many changes of a held set one screen shows.
const shownOfSet = 6

func printHeld(s screen.Screen, r Result, wide bool) {
	if len(r.Sets) > 0 {
		heading(s, "Held until a person approves; all else goes on")
	}
	for _, set := range r.Sets {
		PrintSet(s, set, wide)
		approve := fmt.Sprintf("kubectl fairlead approve %s/%s %s -n %s", kube.ShortKind, r.Name, set.Approve, r.Namespace)
		if r.Manifest {
			approve = "once it is applied: " + approve
		}
		s.Linef("      %s", approve)
	}
	t := screen.Table{Indent: "    "}
	n := 0
	for _, c := range r.Held() {
		if unapprovable(c) && c.Object.Kind != "Pod" {
			n++
			t.Row(append(screen.Texts(c.Object.String(), c.Path), screen.Cell{Text: string(c.Effect), Paint: effectPaint(c.Effect)}, verdict(c), screen.Cell{Text: c.Message})...)
		}
	}
	if n > 0 {
		heading(s, "Held, and cannot be approved")
		s.Print(t)
	}
}

// PrintSet prints one held set.
func PrintSet(s screen.Screen, set plan.Held, wide bool) {
	first := set.Changes[0]
	effect := s.Painted(effectPaint(first.Effect), string(first.Effect))
	s.Linef("    %s  %s, cause %s, effect %s", s.Painted(screen.Mind, set.Approve), screen.Many(len(set.Changes), "change"), first.Cause, effect)
	t := screen.Table{Indent: "      "}
	for i, c := range set.Changes {
		if i == shownOfSet && !wide && len(set.Changes) > shownOfSet+1 {
			break
		}
		from, to := c.From, c.To
		if !wide {
			from, to = short(from), short(to)
		}
		t.Row(screen.Texts(c.Object.String(), c.Path, from, "->", to)...)
	}
	s.Print(t)
	if left := len(set.Changes) - shownOfSet; left > 1 && !wide {
		s.Linef("      %s", s.Painted(screen.Faint, fmt.Sprintf("and %d more (-o wide)", left)))
	}
	if first.Message != "" {
		s.Linef("      %s", screen.Clean(first.Message))
	}
}

func printRefused(s screen.Screen, r Result) {
	if len(r.Refused()) > 0 {
		return // the findings say it, and nothing is carried out
	}
	t := screen.Table{Indent: "    "}
	n := 0
	for _, c := range r.Changes {
		if c.Verdict == plan.VerdictRefuse {
			n++
			t.Row(screen.Texts(c.Object.String(), c.Path, c.Message)...)
		}
	}
	if n > 0 {
		heading(s, "Refused")
		s.Print(t)
	}
}

// printLosses prints claims that would go, and Pods that would come back different.
func printLosses(s screen.Screen, r Result) {
	if len(r.Claims) > 0 {
		heading(s, "Claims that would go, with the data on them")
		t := screen.Table{Indent: "    "}
		for _, c := range r.Claims {
			t.Row(append(screen.Texts(c.Object.Name), verdict(c), screen.Cell{Text: c.Message})...)
		}
		s.Print(t)
	}
	PrintLost(s, r.IfLost)
}

// PrintLost prints the Pods that would come back different.
func PrintLost(s screen.Screen, lost []Lost) {
	if len(lost) == 0 {
		return
	}
	heading(s, "Pods that would change if they were lost")
	t := screen.Table{Indent: "    "}
	for _, l := range lost {
		t.Row(screen.Texts(l.Pod, "has "+l.Has, "would get "+l.Gets, strings.Join(l.Images, "; "))...)
	}
	s.Print(t)
}

// shortest is how much of a value a table shows.
const shortest = 60

func short(v string) string {
	if utf8.RuneCountInString(v) > shortest {
		return string([]rune(v)[:shortest-1]) + "…"
	}
	return v
}
