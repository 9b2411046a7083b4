package doris

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// rollDouble is what the test double of the database knows of rolls: when processes
// started, and what is routed to backends.
type rollDouble struct {
	// processes are the Pods that it has heard from, by host.
	processes map[string]string
	// late has it speak of processes that are gone as if they were there, and not hear
	// from new ones.
	late bool
	// dead is a Pod that it does not count on, whatever the kubelet says.
	dead string
	// noRouting has it refuse to route as it is told.
	noRouting bool
	// plain is an account that may change members and see nothing else.
	plain bool
	// memory are the settings of the master, and of which process they are.
	memory   map[string]string
	memoryOf string
	// dumped are the revisions of frontends before which the metadata was written;
	// noDump is what is said instead.
	dumped map[string]bool
	noDump error
	// lenient holds of no Pod that goes what it should.
	lenient bool
}

// hears notes which processes are new.
func (d *databaseDouble) hears() {
	if d.processes == nil {
		d.processes = map[string]string{}
	}
	live := map[string]corev1.Pod{}
	for _, pod := range d.world.pods() {
		if ready(&pod) {
			live[hostOf(pod.Name)] = pod
		}
	}
	hear := func(host string, alive *bool, started *string) {
		pod, lives := live[host]
		if d.late && d.processes[host] != "" {
			*alive = true
			return
		}
		if *alive = lives && podOfHost(host) != d.dead; lives && d.processes[host] != string(pod.UID) {
			d.processes[host], *started = string(pod.UID), d.world.now.Format(time.DateTime)
		}
	}
	for i := range d.frontends {
		hear(d.frontends[i].Host, &d.frontends[i].Alive, &d.frontends[i].LastStartTime)
	}
	for i := range d.backends {
		hear(d.backends[i].Host, &d.backends[i].Alive, &d.backends[i].LastStartTime)
	}
	d.elects()
}

// elects makes the first follower that is alive the master, if the master is not.
func (d *databaseDouble) elects() {
	if slices.ContainsFunc(d.frontends, func(f client.Frontend) bool { return f.IsMaster && f.Alive }) {
		return
	}
	for i := range d.frontends {
		d.frontends[i].IsMaster = false
	}
	for i := range d.frontends {
		if f := &d.frontends[i]; f.Alive && votes(f) && podOfHost(f.Host) == d.prefers {
			f.IsMaster = true
			return
		}
	}
	for i := range d.frontends {
		if f := &d.frontends[i]; f.Alive && f.Role == "FOLLOWER" {
			f.IsMaster = true
			return
		}
	}
}

// Route implements Router.
func (d *databaseDouble) Route(_ context.Context, _ databaseAddress, member client.Node, what client.Routing) error {
	if d.failing != nil {
		return d.failing
	}
	if d.noRouting {
		return &client.Error{Op: "route", Kind: client.ErrRefused, Text: "unknown properties"}
	}
	pod := podOfHost(member.Host)
	b := d.row(pod)
	if b == nil {
		return fmt.Errorf("backend does not exists[%s]", member)
	}
	recorded, has := readRolling(d.world.set(pod[:strings.LastIndexByte(pod, '-')]))
	if one := recorded.Pods[pod]; !has || one.Member != member.String() || what.DisableQuery != nil && !one.Query || what.DisableLoad != nil && !one.Load {
		d.world.Errorf("%s is routed without a record of it: %+v", pod, recorded)
	}
	to := "back"
	if what.DisableQuery != nil {
		b.State.QueryDisabled = *what.DisableQuery
	}
	if what.DisableLoad != nil {
		b.State.LoadDisabled = *what.DisableLoad
	}
	if what.DisableQuery != nil && *what.DisableQuery || what.DisableLoad != nil && *what.DisableLoad {
		to = "away"
	}
	d.statements = append(d.statements, "route "+to+" "+pod)
	if d.losing {
		d.losing = false
		return &client.Error{Op: "route", Kind: client.ErrUnreachable}
	}
	return nil
}

// settings are those of the master that is master now: another one has its own.
func (d *databaseDouble) settings() map[string]string {
	for i := range d.frontends {
		if f := &d.frontends[i]; f.IsMaster && d.memoryOf != f.Host+f.LastStartTime {
			d.memoryOf, d.memory = f.Host+f.LastStartTime, map[string]string{}
			for _, key := range balancing {
				d.memory[key] = "false"
			}
		}
	}
	return d.memory
}

// Balancing implements Balancer.
func (d *databaseDouble) Balancing(context.Context, databaseAddress) (map[string]string, error) {
	if d.plain {
		return nil, &client.Error{Op: "show configuration", Kind: client.ErrDenied}
	}
	return maps.Clone(d.settings()), d.failing
}

// Balance implements Balancer.
func (d *databaseDouble) Balance(_ context.Context, _ databaseAddress, key, value string) error {
	if d.failing != nil {
		return d.failing
	}
	if recorded := balanceStopped(d.world.set("doris-fe")); !slices.Contains(recorded, key) {
		d.world.Errorf("%s is set without a record of it: %v", key, recorded)
	}
	d.settings()[key] = value
	d.statements = append(d.statements, key+" = "+value)
	return nil
}

// Dump implements Dumper.
func (d *databaseDouble) Dump(context.Context, databaseAddress) (file, host string, err error) {
	if err := cmp.Or(d.failing, d.noDump); err != nil {
		return "", "", err
	}
	if d.dumped == nil {
		d.dumped = map[string]bool{}
	}
	d.dumped[d.world.set("doris-fe").Status.UpdateRevision] = true
	d.statements = append(d.statements, "dump")
	if d.losing {
		d.losing = false
		return "", "", &client.Error{Op: "dump", Kind: client.ErrUnreachable}
	}
	for i := range d.frontends {
		if d.frontends[i].IsMaster {
			host = d.frontends[i].Host
		}
	}
	return "/opt/apache-doris/fe/doris-meta/image.4711", host, nil
}

// undumped tells whether a frontend is about to get another version, and the metadata
// was not written.
func (d *databaseDouble) undumped(pod *corev1.Pod) bool {
	set, rollout := d.world.set("doris-fe"), d.world.dc.Spec.Rollout
	if rollout != nil && rollout.MetadataDump == dorisv1.MetadataDumpNever || d.dumped[set.Status.UpdateRevision] {
		return false
	}
	return strings.Contains(pod.Name, "-fe-") && tagOf(mainImage(pod.Spec, "fe")) != tagOf(mainImage(set.Spec.Template.Spec, "fe"))
}

// mayGo holds that a Pod which serves goes only while the database is as it should be.
func (d *databaseDouble) mayGo(pod *corev1.Pod) {
	if d == nil || d.lenient || !ready(pod) || d.failing != nil {
		return
	}
	if d.undumped(pod) {
		d.world.Errorf("%s goes before the metadata was written into a file", pod.Name)
	}
	for i := range d.backends {
		b := &d.backends[i]
		name := podOfHost(b.Host)
		switch {
		case name == pod.Name && !d.noRouting && len(d.backends) > 1 && (!b.State.QueryDisabled || !b.State.LoadDisabled):
			d.world.Errorf("%s goes and still gets queries or loads", name)
		case name != pod.Name && !b.Alive:
			d.world.Errorf("%s goes while the database does not hear from %s", pod.Name, name)
		case name != pod.Name && d.processes[b.Host] != d.uidOf(name):
			d.world.Errorf("%s goes before the database has heard from the new %s", pod.Name, name)
		}
	}
	for i := range d.frontends {
		f := &d.frontends[i]
		if name := podOfHost(f.Host); name != pod.Name && (!f.Alive || d.processes[f.Host] != d.uidOf(name)) {
			d.world.Errorf("%s goes before the database has heard from %s", pod.Name, name)
		}
	}
}

// backendRow is a row of the list of backends.
type backendRow = client.Backend

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (d *databaseDouble) uidOf(name string) string {
	for _, pod := range d.world.pods() {
		if pod.Name == name {
			return string(pod.UID)
		}
	}
	return ""
}
