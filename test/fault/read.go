package fault

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// watching is a watch that runs.
type watching struct {
	http.ResponseWriter
	resource string
	cut      context.CancelFunc
	ctx      context.Context // the life of the watch, which Write must not outlast

	mu   sync.Mutex
	held time.Time
}

func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, q request) {
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	one := &watching{ResponseWriter: w, resource: q.resource, ctx: ctx, cut: cut}
	p.mu.Lock()
	p.watches[one] = struct{}{}
	p.begun, p.newest = p.begun+1, time.Now()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.watches, one)
		p.mu.Unlock()
	}()
	p.forward.ServeHTTP(one, r.WithContext(ctx))
	if ctx.Err() != nil {
		panic(http.ErrAbortHandler) // not an orderly end of the stream
	}
}

// Write passes on what the watch tells, later when it is held.
func (w *watching) Write(b []byte) (int, error) {
	w.mu.Lock()
	wait := time.Until(w.held)
	w.mu.Unlock()
	if wait > 0 {
		pause(w.ctx, wait)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets what is written be flushed.
func (w *watching) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// running lists the watches of a resource, or all.
func (p *Proxy) running(resource string) []*watching {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*watching
	for w := range p.watches {
		if resource == "" || resource == w.resource {
			out = append(out, w)
		}
	}
	return out
}

func (p *Proxy) cut(resource string) {
	for _, w := range p.running(resource) {
		w.cut()
	}
}

func (p *Proxy) hold(resource string, d time.Duration) {
	until := time.Now().Add(d)
	for _, w := range p.running(resource) {
		w.mu.Lock()
		w.held = until
		w.mu.Unlock()
	}
}

// beOld makes the next list of a resource an old one (of each, if it is empty).
func (p *Proxy) beOld(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, kept := range p.lists {
		if resource == "" || resource == kept.resource {
			p.old[key] = true
		}
	}
}

// list answers a list, and keeps the first answer of each kind.
func (p *Proxy) list(w http.ResponseWriter, r *http.Request, q request) {
	key := r.URL.Path + "?" + r.URL.RawQuery + " " + r.Header.Get("Accept")
	if a := p.oldList(key); a != nil {
		a.write(w)
		return
	}
	a, err := p.send(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.mu.Lock()
	if _, known := p.lists[key]; !known && a.code == http.StatusOK {
		p.lists[key] = keptList{resource: q.resource, answer: a}
	}
	p.mu.Unlock()
	a.write(w)
}

// keptList is the first answer to a list.
type keptList struct {
	resource string
	*answer
}

// oldList returns the recorded answer if the list shall be an old one now.
func (p *Proxy) oldList(key string) *answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.old[key] {
		return nil
	}
	delete(p.old, key)
	p.served++
	return p.lists[key].answer
}

// OldLists counts the lists that were answered with an old one.
func (p *Proxy) OldLists() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}
