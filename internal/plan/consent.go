package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
)

// digestLength is the number of hex digits of a digest: enough that nobody
// consents to something else by accident, and short enough to be typed.
const digestLength = 12

// Digest names a set of held changes, for consent. It covers what would be done:
// object, path, the new value and the effect; not what is there now, nor how it
// is put into words. It also covers how many consents the object has used up, so
// that one that was carried out never counts for a later change that looks alike.
func Digest(used int, changes []Change) string {
	lines := make([]string, 0, len(changes))
	for _, c := range changes {
		lines = append(lines, strings.Join([]string{c.Object.String(), c.Path, c.To, string(c.Effect)}, "\x00"))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strconv.Itoa(used) + "\x01" + strings.Join(lines, "\x01")))
	return hex.EncodeToString(sum[:])[:digestLength]
}

// Held is one set of changes that is consented to as a whole.
type Held struct {
	// Approve is the digest of the set.
	Approve string   `json:"approve"`
	Changes []Change `json:"changes"`
}

// HeldSets returns the held changes by set, in the order of the plan. Changes
// that cannot be consented to are not in it.
func (p Plan) HeldSets() []Held {
	var out []Held
	place := map[string]int{}
	for _, c := range p.Held() {
		if c.Approve == "" {
			continue
		}
		i, known := place[c.Approve]
		if !known {
			i = len(out)
			place[c.Approve] = i
			out = append(out, Held{Approve: c.Approve})
		}
		out[i].Changes = append(out[i].Changes, c)
	}
	return out
}

// Consents returns how many consents an object has used up.
func Consents(o client.Object) int {
	if o == nil {
		return 0
	}
	return ConsentsIn(o.GetAnnotations()[meta.AnnotationConsents])
}

// ConsentsIn returns the count that the annotation says; 0 where it says none.
func ConsentsIn(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Approve tells the builder which sets a person consents to: the value of the
// annotation, digests separated by commas or spaces.
func (b *Builder) Approve(annotation string) {
	for _, digest := range strings.FieldsFunc(annotation, func(r rune) bool { return r == ',' || r == ' ' }) {
		b.approvals[digest] = false
	}
}

// Hold adds a set of changes that nothing carries out without consent, and tells
// whether a person has given it; then nothing is added, since what carries the
// changes out says them itself.
func (b *Builder) Hold(used int, changes []Change) (approved bool) {
	if len(changes) == 0 {
		return false
	}
	digest := Digest(used, changes)
	if b.consented(digest) {
		return true
	}
	for _, c := range changes {
		c.Verdict, c.Approve = VerdictHold, digest
		b.plan.Changes = append(b.plan.Changes, c)
	}
	return false
}

// consented tells whether a person consents to the set of a digest, and notes
// that the consent was for something.
func (b *Builder) consented(digest string) bool {
	if _, given := b.approvals[digest]; !given {
		return false
	}
	b.approvals[digest] = true
	return true
}

// staleApprovals are consents to sets that are not there.
func (b *Builder) staleApprovals() []Finding {
	var stale []string
	for digest, used := range b.approvals {
		if !used {
			stale = append(stale, digest)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	now := "nothing is held"
	if sets := b.plan.HeldSets(); len(sets) > 0 {
		digests := make([]string, 0, len(sets))
		for _, s := range sets {
			digests = append(digests, s.Approve)
		}
		now = "held is " + strings.Join(digests, ", ")
	}
	return []Finding{{
		Severity: Warning, Field: "metadata.annotations[" + strconv.Quote(meta.AnnotationApprove) + "]", Reason: meta.ReasonStaleApproval,
		Message: fmt.Sprintf("%s is consent to a set of changes that is not held (any more): %s. Look at the plan and approve that, or remove the annotation", strings.Join(stale, ", "), now),
	}}
}
