package doris

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// Plan decides what to do. It reads from top to bottom like the life of a
// cluster: shared objects, frontends, the gate, backends, Pods to be replaced.
func (s *System) Plan(dc *dorisv1.DorisCluster, w World, now time.Time) (plan.Plan, error) {
	p := s.planner(dc, w)
	p.now = now
	if p.makeAgain() {
		return p.build.Plan()
	}
	if released(dc) {
		p.release()
		return p.build.Plan()
	}
	contents := p.contents()
	objects, findings := Desired(dc, p.inputs(contents))
	findings = append(findings, p.versionSteps()...)
	p.build.Find(findings...)
	if refused(findings) {
		return p.build.Plan()
	}
	p.runtime, p.policy, findings = p.runtimes(objects, contents)
	if refused(findings) {
		p.saysWhatMoves(objects, contents)
	}
	if p.build.Find(findings...); p.build.Refused() {
		return p.build.Plan()
	}
	p.ahead = ahead{settings: objects.Settings, contents: contents, lacking: map[dorisv1.ComponentType]bool{}}
	for _, m := range objects.Missing {
		p.ahead.lacking[m.Component] = true
	}
	p.prune(contents)
	for _, secret := range objects.Secrets {
		p.want(secret, live(w.OwnSecrets, secret.Name), "account of the operator and the entrypoints")
	}
	p.wantDigestKey()
	p.observed()
	for _, record := range objects.ConfigMaps {
		p.want(p.withRetired(record), live(w.OwnMaps, record.Name), "record that the frontends have served")
	}
	if err := p.components(objects, contents); err != nil {
		return plan.Plan{}, err
	}
	p.removed()
	p.brokersGone()
	p.register()
	p.endpoints()
	if err := p.rollThenWait(); err != nil {
		return plan.Plan{}, err
	}
	p.firstRollout()
	built, err := p.build.Plan()
	return p.revisited(p.rechecked(built)), err
}

// saysWhatMoves names the data that an edit would move, before anything else that is
// wrong with it.
func (p planner) saysWhatMoves(objects Objects, contents map[dorisv1.ComponentType]content) {
	for _, c := range objects.Components {
		p.build.Find(p.movesData(p.workloadOf(c.Type, objects.Settings, contents[c.Type]))...)
	}
}

// components plans each component, and the autoscaler after the one that it scales.
func (p planner) components(objects Objects, contents map[dorisv1.ComponentType]content) error {
	for _, c := range objects.Components {
		if err := p.barriers(c, objects.MissingFor(c.Type)); err != nil {
			return err
		}
		work := p.workloadOf(c.Type, objects.Settings, contents[c.Type])
		if err := p.component(c, work, contents[c.Type]); err != nil {
			return err
		}
		if c.Type == dorisv1.ComponentCN && objects.Autoscaler != nil {
			p.autoscale(objects.Autoscaler)
		}
	}
	if objects.Autoscaler == nil {
		p.autoscale(nil)
	}
	return nil
}

// planner returns what plans for a cluster.
func (s *System) planner(dc *dorisv1.DorisCluster, w World) planner {
	found := w.StatefulSets
	w.StatefulSets = recordsBack(dc, found)
	p := planner{
		dc: dc, world: w, found: found, engine: s.engine, build: plan.NewBuilder(s.engine, FieldManager),
		latest: s.latest(), future: s.future, copied: map[string]bool{}, known: map[string]*corev1.ConfigMap{},
		rechecks: map[plan.Ref]string{}, mustGo: map[string]bool{}, later: map[dorisv1.ComponentType]bool{}, leave: newLeaving(), tuning: s.tuning(dc),
	}
	for _, fault := range p.tuning.Faults {
		p.build.Find(plan.Finding{Severity: plan.Warning, Field: "metadata.annotations", Reason: meta.ReasonNoEffect, Message: fault})
	}
	p.build.Approve(dc.Annotations[meta.AnnotationApprove])
	return p
}

// planner is the state of one planning.
type planner struct {
	dc    *dorisv1.DorisCluster
	world World
	// found are the sets as they are; those in world have got records back that they
	// had lost.
	found  map[string]*appsv1.StatefulSet
	engine *diff.Engine
	build  *plan.Builder
	// latest is the newest revision of the rendering; future changes what is
	// rendered at one that is newer than LatestRevision.
	latest int
	future func(*appsv1.StatefulSet)
	// known is the content of copies that are there or are to be made.
	known map[string]*corev1.ConfigMap
	// copied are the copies of ConfigMaps that are in the plan already.
	copied map[string]bool
	// asked, if it is not nil, collects the nodes that have to be asked; rechecks
	// are what no event tells the end of.
	asked    map[string]question
	rechecks map[plan.Ref]string
	// mustGo are Pods whose template is right and whose process is not: only a
	// start brings back a default that is not known.
	mustGo map[string]bool
	// leave is what is known of members that leave the database; now is the time of
	// the planning.
	leave *leaving
	now   time.Time
	// ahead is what tells which templates change by this plan, and later are those that
	// wait for their turn.
	ahead ahead
	later map[dorisv1.ComponentType]bool
	// runtime says where each component keeps settings that are changed at run time,
	// and policy what becomes of components that are new.
	runtime map[dorisv1.ComponentType]*runtimeconfig.Record
	// tuning are the options of the operator's configuration for the cluster.
	tuning Tuning
	policy runtimeconfig.Policy
}

// contents are what each component mounts of ConfigMaps.
func (p planner) contents() map[dorisv1.ComponentType]content {
	out := map[dorisv1.ComponentType]content{}
	for _, kind := range rendered {
		if specOf(p.dc, kind) == nil {
			continue
		}
		out[kind] = p.contentOf(kind)
		for name, copied := range out[kind].copies {
			p.known[copied] = out[kind].maps[name]
		}
		for name, copied := range out[kind].live {
			p.known[copied] = out[kind].liveMaps[name]
		}
	}
	return out
}

// inputs are what the settings are read from: the content that the components
// have, or are to get.
func (p planner) inputs(contents map[dorisv1.ComponentType]content) Inputs {
	in := Inputs{
		Revision: LatestRevision, ConfigMaps: maps.Clone(p.world.ConfigMaps), Secrets: p.world.Secrets, Claims: p.world.Claims,
		Bootstrapped: p.bootstrapped(), DataInCompute: p.dataInCompute(), AccountFault: p.world.AccountFault,
	}
	in.Mounted = map[dorisv1.ComponentType]map[string]*corev1.ConfigMap{}
	for kind, has := range contents {
		in.Mounted[kind] = maps.Clone(p.world.ConfigMaps)
		maps.Copy(in.Mounted[kind], has.maps)
	}
	for _, kind := range slices.Backward(rendered) { // what exists, or did for its Pods
		maps.Copy(in.ConfigMaps, contents[kind].maps)
	}
	return in
}

func (p planner) want(rendered, live client.Object, reason string) {
	w := plan.Want{Rendered: rendered, Live: live, Reason: reason, Cause: p.causeOf(rendered, live)}
	if service, is := live.(*corev1.Service); is {
		if p.adoptsPorts(rendered, service) {
			return // what is applied is planned when the ports are ours
		}
		p.asFoundService(&w, service)
	}
	p.build.Want(w)
}

// barriers are what a component waits for. Before the first of them the Pods of
// the components before it are seen to: what is waited for may never come from a
// Pod whose template was mended and which nobody replaces.
func (p planner) barriers(c Component, missing []Missing) error {
	closed := p.gateClosed(c)
	if !closed && len(missing) == 0 {
		return nil
	}
	if err := p.rollUnlessSettling(); err != nil {
		return err
	}
	if closed {
		p.build.Wait(plan.Wait{
			On:      plan.Ref{Kind: "StatefulSet", Namespace: p.dc.Namespace, Name: StatefulSetName(p.dc.Name, dorisv1.ComponentFE)},
			Reason:  meta.ReasonWaitingForComponent,
			Message: pluralOf(c.Type) + " are made when a frontend serves",
		})
	}
	if len(missing) == 0 {
		return nil
	}
	messages := make([]string, 0, len(missing))
	for _, m := range missing {
		messages = append(messages, m.Message)
	}
	p.build.Wait(plan.Wait{
		On: missing[0].On, Reason: meta.ReasonMissingReference, Message: strings.Join(messages, "; "), Person: true,
	})
	return nil
}

// gateClosed tells whether a component waits until a frontend serves. It does not
// when frontends are elsewhere or its set exists already.
func (p planner) gateClosed(c Component) bool {
	if c.Type == dorisv1.ComponentFE || p.dc.Spec.FeSpec == nil {
		return false
	}
	if external, _ := externalFrontends(specOf(p.dc, c.Type)); len(external) > 0 {
		return false
	}
	return p.world.StatefulSets[c.StatefulSet.Name] == nil && servingFrontends(p.world) == 0
}

func (p planner) component(c Component, w workload, has content) error {
	if w.revision > p.latest {
		p.build.Find(plan.Finding{
			Severity: plan.Unsupported, Field: "spec." + string(c.Type) + "Spec", Reason: meta.ReasonNotSupportedYet,
			Message: fmt.Sprintf("StatefulSet %s was rendered at revision %d by a newer version of the operator, and this one knows %d: it is kept as it is until that version is back", w.live.Name, w.revision, p.latest),
		})
		return nil
	}
	p.build.Find(p.movesData(w)...)
	p.wantCopies(has)
	p.services(c)
	if w.found {
		p.takeOver(w)
		return nil
	}
	p.sayRecords(w)
	disks := p.disks(w)
	p.growDisks(disks)
	if p.recreates(w, disks) {
		return nil
	}
	consented := has.approved || w.secrets.approved
	if err := p.decide(&w, consented); err != nil {
		return err
	}
	w.approved = w.approved || consented
	target := p.targetOf(w, disks)
	if err := p.additions(w, target); err != nil {
		return err
	}
	replicas := p.replicas(c)
	if p.leave.wrote[c.Type] {
		return nil // the set is another one by then
	}
	if err := p.carryOut(w, target, replicas); err != nil {
		return err
	}
	p.budget(w, replicas)
	p.sayContent(w, has)
	p.saySecrets(w)
	p.reload(w)
	return nil
}

func (p planner) services(c Component) {
	for _, service := range c.Services {
		what := "names of the Pods of " + string(c.Type)
		if service.Name == AccessServiceName(p.dc.Name, c.Type) {
			what = "access to " + string(c.Type)
		}
		p.want(service, live(p.world.Services, service.Name), what)
	}
}

// targetOf is the set as it shall be, but for what somebody else added.
func (p planner) targetOf(w workload, disks []disk) *appsv1.StatefulSet {
	target := p.rendered(w, w.target, w.at)
	if w.live != nil && !w.changes { // what the claims ask for now is said, though it says nothing about Pods
		target.Spec.VolumeClaimTemplates = p.rendered(w, w.now, w.at).Spec.VolumeClaimTemplates
	}
	target.Spec.PersistentVolumeClaimRetentionPolicy = retention(specOf(p.dc, w.kind).ClaimRetention) // whatever the template is rendered from
	keepTemplates(target, w.live, disks)
	p.copyPolicy(w.kind, target)
	w.mark(target)
	p.asRemembered(w, target)
	return target
}

// carryOut plans the set itself.
func (p planner) carryOut(w workload, target *appsv1.StatefulSet, replicas int32) error {
	if w.untouched && !w.changes && w.live != nil && w.revision == 0 {
		p.remaining(w)
		p.forgetFailure(w)
		p.endHistory(w)
		p.acceptLive(w)
		return p.asItIs(w, target, replicas)
	}
	return p.apply(w, target, p.causeInSet(w), replicas)
}

// mark stamps the template, or keeps the stamp where the template is not changed
// on purpose.
func (w workload) mark(target *appsv1.StatefulSet) {
	if w.back != nil { // as it was, also without a stamp
		if w.back.Template != "" {
			annotateTemplate(target, meta.AnnotationTemplate, w.back.Template)
		}
		return
	}
	if w.revision == 0 && !w.changes && (w.live == nil || w.untouched) {
		return // as it was found, or as it was made at first
	}
	if w.live != nil && !w.changes {
		if text := w.live.Annotations[meta.AnnotationAccepted]; text != "" && w.recorded.same(w.target) {
			target.Annotations[meta.AnnotationAccepted] = text // word for word
		}
		if was := stampOf(w.live); was != "" {
			annotateTemplate(target, meta.AnnotationTemplate, was)
			return
		}
	}
	stamp(target, w.target.Content, w.target.Secrets)
}

// apply plans the set by server-side apply.
func (p planner) apply(w workload, target *appsv1.StatefulSet, cause func(string) plan.Cause, replicas int32) error {
	adopting, err := p.adopts(w, target)
	if err != nil || adopting {
		return err // what is applied is planned when the fields are ours
	}
	target.Spec.Replicas = new(replicas)
	p.remember(w, target)
	p.carry(target)
	p.rememberHistory(w, target)
	p.rememberResize(w, target)
	p.build.Want(plan.Want{
		Rendered: target, Live: live(p.found, target.Name), Cause: cause, Approved: w.approved, Restart: w.restart, Says: w.sizesSaid(),
		Reason: strconv.Itoa(int(replicas)) + " Pods of " + string(w.kind), Update: w.update(),
		Exact: true, // the number of replicas may be what was observed
	})
	if w.back == nil {
		p.followers(w.kind, target)
	}
	return nil
}

func refused(findings []plan.Finding) bool {
	for _, f := range findings {
		if f.Severity == plan.Refusal {
			return true
		}
	}
	return false
}

// live returns the observed object of a name as an interface that is nil when
// there is none.
func live[T client.Object](observed map[string]T, name string) client.Object {
	if o, ok := observed[name]; ok {
		return o
	}
	return nil
}
