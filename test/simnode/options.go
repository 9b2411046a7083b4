package simnode

import (
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/utils/clock"
)

// UserAgent names the simulator's requests in the audit log.
const UserAgent = "simnode"

// StorageClass is the default storage class, whose claims the simulator
// provisions and grows.
const StorageClass = "simulated"

// Driver is the provisioner of StorageClass. Claims of any other class that
// names it are served too.
const Driver = "simnode.fairlead.dev"

// Options says how many nodes there are and how they behave. The zero value
// is three nodes whose Pods are Ready after one second.
type Options struct {
	// Nodes is the number of nodes; 3 if zero.
	Nodes int
	// NodePrefix starts the names of the nodes ("sim" if empty: sim-0, sim-1 …).
	NodePrefix string
	// Zones spreads the nodes over so many zones; 3 if zero.
	Zones int

	// Start is the time from a Pod's binding until its containers run; one
	// second if nil.
	Start Delay
	// Ready is the time from there until a container with a readiness or a
	// startup probe is ready. With none, both happen in one status write.
	Ready Delay
	// Restart is how long a container is down when it restarts in place; as
	// Start if nil.
	Restart Delay
	// Stop is how long a deleted Pod takes to end, at most its grace period.
	Stop Delay
	// Run is how long the containers of a Pod that a Job owns run before they
	// exit with code 0.
	Run Delay
	// Resize is how long a resize that was accepted is in progress.
	Resize Delay
	// Provision is how long a claim waits for its volume.
	Provision Delay
	// Grow is how long each of the two halves of a claim's growth takes (the
	// driver's, then the node's).
	Grow Delay
	// Backoff is the wait of failed pulls and crash loops.
	Backoff Backoff

	// Seed makes the draws repeatable: a Pod's draws depend on the seed, its
	// name and how often a Pod of that name existed, not on the order of events.
	Seed uint64
	// Clock is the source of time; the system's if nil.
	Clock clock.WithTicker
	// Workers is the number of Pods handled at once; 16 if zero.
	Workers int
	// PodRange is where Pod IPs are taken from; 10.200.0.0/14 if unset. Nothing
	// listens there unless a test makes it so.
	PodRange netip.Prefix

	// OnStart is called when a container starts, before its status is written,
	// and OnStop when it has ended: the place for a test to start and stop an
	// in-process server. Calls for one Pod come one after the other.
	OnStart func(Process)
	// OnStop is the counterpart of OnStart.
	OnStop func(Process)

	// Log receives what went wrong; nothing is logged if nil.
	Log *slog.Logger
}

// Backoff doubles from First to Max.
type Backoff struct {
	// First is the first wait; one second if zero (a kubelet's is ten).
	First time.Duration
	// Max is the longest wait; thirty seconds if zero (a kubelet's is 300).
	Max time.Duration
}

func (b Backoff) wait(failures int) time.Duration {
	d := b.First
	for i := 1; i < failures && d < b.Max; i++ {
		d *= 2
	}
	return min(d, b.Max)
}

func (o Options) withDefaults() Options {
	setDefault(&o.Nodes, 3)
	setDefault(&o.NodePrefix, "sim")
	setDefault(&o.Zones, 3)
	setDefault(&o.Workers, 16)
	setDefault(&o.Backoff.First, time.Second)
	setDefault(&o.Backoff.Max, 30*time.Second)
	setDefault(&o.PodRange, netip.MustParsePrefix("10.200.0.0/14"))
	if o.Start == nil {
		o.Start = Fixed(time.Second)
	}
	if o.Restart == nil {
		o.Restart = o.Start
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
