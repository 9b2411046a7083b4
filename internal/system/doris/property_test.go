package doris

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// TestAnyHistorySettles lets random people, faults and crashes act on a cluster
// and holds that every step keeps the invariants of the package (see
// world.invariants and world.mayGo), that it settles once the faults end, and
// that there is nothing left to do then.
func TestAnyHistorySettles(t *testing.T) {
	t.Parallel()
	end, failed := time.Now().Add(budget()), false
	rapid.Check(t, func(t *rapid.T) {
		if !failed && time.Now().After(end) {
			return
		}
		failed = true // until it has passed
		w := newWorld(t, threeByThree).withDatabase()
		w.db.replication = 1
		h := &chaos{T: t, world: w}
		w.edit(func(s *dorisv1.DorisClusterSpec) { h.drawSpec(s) })
		t.Repeat(map[string]func(*rapid.T){
			"operator":    func(t *rapid.T) { h.operator(t) },
			"operator2":   func(t *rapid.T) { h.operator(t) },
			"controllers": func(*rapid.T) { w.controllers() },
			"kubelet":     func(t *rapid.T) { h.kubelet(t) },
			"kubelet2":    func(t *rapid.T) { h.kubelet(t) },
			"user":        func(t *rapid.T) { h.user(t) },
			"stranger":    func(t *rapid.T) { h.stranger(t) },
			"fault":       func(t *rapid.T) { h.fault(t) },
			"deletion":    func(t *rapid.T) { h.deletion(t) },
			"database":    func(t *rapid.T) { h.database(t) },
		})
		h.ends()
		failed = failed && t.Failed()
	})
}

type chaos struct {
	*rapid.T
	world *world
}

func (h *chaos) drawSpec(s *dorisv1.DorisClusterSpec) {
	s.FeSpec.Replicas = new(int32(rapid.SampledFrom([]int{1, 3}).Draw(h.T, "frontends")))
	s.FeSpec.ElectionNumber = new(int32(1))
	s.BeSpec.Replicas = new(int32(rapid.IntRange(1, 3).Draw(h.T, "backends")))
}

// operator reconciles once, on a view that may be stale, and may be killed
// between two steps or have a call fail before or after it took effect.
func (h *chaos) operator(t *rapid.T) {
	w := h.world
	lag := rapid.IntRange(0, 6).Draw(t, "lag")
	p, observed := w.plan(w.store.Before(lag, w.written))
	for i, s := range p.Steps {
		if _, waits := s.(plan.Wait); waits {
			break
		}
		switch rapid.SampledFrom([]string{"done", "done", "done", "done", "killed", "lost"}).Draw(t, fmt.Sprintf("step %d", i)) {
		case "killed":
			return
		case "lost": // the answer got lost: nobody knows whether it was done
			_ = w.step(s)
			return
		}
		if err := w.step(s); err != nil {
			// What an old view showed may have changed, or gone: it is tried again.
			if apierrors.IsConflict(err) || lag > 0 && apierrors.IsNotFound(err) {
				return
			}
			t.Fatalf("%s: %v", s.Why(), err)
		}
	}
	w.report(p, observed)
}

func (h *chaos) kubelet(t *rapid.T) {
	pods := h.world.pods()
	if len(pods) == 0 {
		return
	}
	h.world.podGoesOn(rapid.SampledFrom(names(pods)).Draw(t, "pod"))
}

func (h *chaos) user(t *rapid.T) {
	h.world.edit(func(s *dorisv1.DorisClusterSpec) {
		switch rapid.SampledFrom([]string{"fe image", "be image", "fe replicas", "be replicas", "service", "env"}).Draw(t, "edit") {
		case "fe image":
			s.FeSpec.Image = rapid.SampledFrom([]string{"apache/doris:fe-1", "apache/doris:fe-2", "apache/doris:bad"}).Draw(t, "image")
		case "be image":
			s.BeSpec.Image = rapid.SampledFrom([]string{"apache/doris:be-1", "apache/doris:be-2", "apache/doris:bad"}).Draw(t, "image")
		case "fe replicas":
			s.FeSpec.Replicas = new(int32(rapid.IntRange(1, 4).Draw(t, "n")))
		case "be replicas":
			s.BeSpec.Replicas = new(int32(rapid.IntRange(0, 4).Draw(t, "n")))
		case "service":
			s.FeSpec.Service = &dorisv1.ExportService{Type: rapid.SampledFrom([]corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort}).Draw(t, "type")}
		case "env":
			s.BeSpec.EnvVars = []corev1.EnvVar{{Name: "TZ", Value: rapid.SampledFrom([]string{"UTC", "CET"}).Draw(t, "zone")}}
		}
	})
}

// stranger edits what belongs to the operator.
func (h *chaos) stranger(t *rapid.T) {
	w := h.world
	name := rapid.SampledFrom([]string{"doris-fe", "doris-be"}).Draw(t, "set")
	if w.store.Now().Get(keyOf(&appsv1.StatefulSet{ObjectMeta: objectMeta(w.dc, name, nil)})) == nil {
		return
	}
	switch rapid.SampledFrom([]string{"image", "restart", "limit", "service", "record"}).Draw(t, "strange edit") {
	case "image":
		stranger(w, name, &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "apache/doris:strange" })
	case "restart":
		stranger(w, name, &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
			s.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "at")}
		})
	case "limit":
		stranger(w, name, &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.RevisionHistoryLimit = new(int32(1)) })
	case "service":
		stranger(w, name+"-service", &corev1.Service{}, func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
	case "record":
		stranger(w, name, &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { delete(s.Annotations, "fairlead.dev/inputs") })
	}
}

func (h *chaos) fault(t *rapid.T) {
	names := []string{"doris-fe-0", "doris-fe-1", "doris-fe-2", "doris-be-0", "doris-be-1", "doris-be-2"}
	name := rapid.SampledFrom(names).Draw(t, "pod")
	if h.world.broken[name] {
		delete(h.world.broken, name)
		return
	}
	h.world.broken[name] = true
}

// deletion takes a Pod away behind the operator's back.
func (h *chaos) deletion(t *rapid.T) {
	pods := h.world.pods()
	if len(pods) == 0 {
		return
	}
	name := rapid.SampledFrom(names(pods)).Draw(t, "deleted")
	h.must(h.world.store.Delete(keyOf(&corev1.Pod{ObjectMeta: objectMeta(h.world.dc, name, nil)}), "", false))
}

// database lets the database and time go on, and something of it go wrong.
func (h *chaos) database(t *rapid.T) {
	db := h.world.db
	switch rapid.SampledFrom([]string{"goes on", "goes on", "stuck", "keeps", "loses", "fails", "answers", "unhealthy"}).Draw(t, "database") {
	case "stuck":
		db.stuck = !db.stuck
	case "keeps":
		db.keep = !db.keep
	case "loses":
		db.losing = true
	case "fails":
		db.failing = errors.New("nobody answers")
	case "answers":
		db.failing = nil
	case "unhealthy":
		db.unhealthy = int64(rapid.IntRange(0, 1).Draw(t, "tablets"))
	}
	h.world.now = h.world.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
	db.goesOn()
}

func names(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		out = append(out, pods[i].Name)
	}
	return out
}

func (h *chaos) must(err error) {
	if err != nil {
		h.Fatalf("%v", err)
	}
}

// ends mends all that is broken and holds that everything comes to rest.
func (h *chaos) ends() {
	w := h.world
	clear(w.broken)
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.FeSpec.Image = strings.Replace(s.FeSpec.Image, "bad", "fe-1", 1)
		s.BeSpec.Image = strings.Replace(s.BeSpec.Image, "bad", "be-1", 1)
		if *s.BeSpec.Replicas == 0 { // the last one has nobody to leave its tablets to
			s.BeSpec.Replicas = new(int32(1))
		}
	})
	w.db.stuck, w.db.losing, w.db.failing, w.db.unhealthy = false, false, nil, 0
	w.lives()
	p := w.settle()
	if !p.Settled() {
		h.Fatalf("at rest, and not settled:\n%s", printPlan(p))
	}
	for _, c := range p.Changes {
		if c.Verdict != plan.VerdictHold && c.Verdict != plan.VerdictRefuse {
			h.Errorf("settled, and yet: %s", printPlan(p))
			break
		}
	}
	if w.store.Now().Version != w.versionAfter(p) {
		h.Errorf("a settled plan writes")
	}
	for _, r := range w.dc.Status.History {
		if r.Outcome == dorisv1.RollUnderWay || r.Outcome != dorisv1.RollUnderWay && r.Ended == nil {
			h.Errorf("settled, and the history says: %+v", r)
		}
	}
	held := map[string]bool{}
	for _, c := range p.Held() {
		held[c.Object.Name] = true
	}
	for _, pod := range w.pods() {
		set := object(w, pod.Name[:strings.LastIndexByte(pod.Name, '-')], &appsv1.StatefulSet{})
		if outdated(set, &pod, edited(p, set)) && !held[set.Name] {
			h.Errorf("%s is outdated although everything is settled", pod.Name)
		}
		if !ready(&pod) {
			h.Errorf("%s is not ready although nothing is broken", pod.Name)
		}
	}
}

// versionAfter carries out a settled plan, which should change nothing.
func (w *world) versionAfter(p plan.Plan) int64 {
	for _, s := range slices.Clone(p.Steps) {
		if _, waits := s.(plan.Wait); !waits {
			w.must(w.step(s))
		}
	}
	return w.store.Now().Version
}
