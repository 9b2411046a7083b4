package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// write is one write from its coming in to its answer.
func (p *Proxy) write(w http.ResponseWriter, r *http.Request, q request) {
	entry, before, after := p.enter(q)
	if a := p.harm(r.Context(), entry, before); a != nil {
		p.tell(w, entry, a)
		return
	}
	a, err := p.send(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the operator sees a connection that broke
	}
	if instead := p.harm(r.Context(), entry, after); instead != nil {
		a = instead
	}
	p.tell(w, entry, a)
}

// enter numbers a write and returns the faults that are due before and after it.
func (p *Proxy) enter(q request) (entry *Write, before, after []Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry = &Write{
		Verb: q.verb, Resource: q.resource, Subresource: q.subresource,
		Namespace: q.namespace, Name: q.name, At: time.Now(),
	}
	if !q.counted() {
		p.others = append(p.others, entry)
		return entry, nil, nil
	}
	p.count++
	entry.Number = p.count
	p.writes = append(p.writes, entry)
	for _, f := range p.plans {
		switch {
		case f.At != entry.Number:
		case f.When == Before:
			before = append(before, f)
		default:
			after = append(after, f)
		}
	}
	return entry, before, after
}

// harm does what is due at a write. It returns what the operator is answered
// instead of the truth, if it is.
func (p *Proxy) harm(ctx context.Context, entry *Write, due []Plan) *answer {
	var instead *answer
	for _, f := range due {
		p.note(entry, f)
		switch f.Do {
		case Kill:
			p.kill()
			panic(http.ErrAbortHandler)
		case Answer:
			instead = refusal(f.Code)
		case Delay:
			pause(ctx, f.For)
		case CutWatch:
			p.cut(f.Resource)
		case HoldWatch:
			p.hold(f.Resource, f.For)
		case OldList:
			p.beOld(f.Resource)
		}
	}
	return instead
}

func (p *Proxy) note(entry *Write, f Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry.Faults = append(entry.Faults, f)
	p.fired = append(p.fired, f)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// answer is one answer as it goes to the operator.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// send sends a request to the API server and reads the whole answer.
func (p *Proxy) send(r *http.Request) (*answer, error) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	p.address(out)
	response, err := p.transport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return &answer{code: response.StatusCode, header: response.Header, body: body}, nil
}

// tell gives the operator an answer to its write.
func (p *Proxy) tell(w http.ResponseWriter, entry *Write, a *answer) {
	p.mu.Lock()
	entry.Code = a.code
	p.mu.Unlock()
	a.write(w)
}

func (a *answer) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body) // it may be gone, and that is its own affair
}

// refusal is what the API server says with a code. With 429 it asks for
// patience, as its priority and fairness does.
func refusal(code int) *answer {
	reasons := map[int]metav1.StatusReason{
		http.StatusConflict:            metav1.StatusReasonConflict,
		http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError: metav1.StatusReasonInternalError,
		http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code],
		Message: fmt.Sprintf("the fault proxy answers %d", code),
	}
	header := http.Header{"Content-Type": []string{"application/json"}}
	if code == http.StatusTooManyRequests {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
		header.Set("Retry-After", "1")
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	return &answer{code: code, header: header, body: body}
}
