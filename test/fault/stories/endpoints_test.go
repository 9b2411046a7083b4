package stories

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// balanced has backends whose load balancer clients outside use.
var balanced = strings.Replace(filled, "replicas: 3\n    image: \"apache/doris:be",
	"replicas: 3\n    streamLoadEndpoint: LoadBalancer\n    service: {type: LoadBalancer}\n    image: \"apache/doris:be", 1)

// theirs is the address outside that somebody gave the last backend.
const theirs = "loads.example.org:443"

// createsBalanced makes the cluster, and somebody gives the last backend a rack, a shelf
// and an address of its own.
func createsBalanced(ctx context.Context, s *scene) error {
	if err := creates(balanced)(ctx, s); err != nil {
		return err
	}
	if err := s.db.fill(ctx, 3); err != nil {
		return err
	}
	return s.tags(ctx, "doris-be-2", `"tag.location" = "rack_b", "tag.public_endpoint" = "`+theirs+`"`)
}

// tags gives a backend these tags, as a person would.
func (s *scene) tags(ctx context.Context, pod, tags string) error {
	hosts, err := s.db.column(ctx, "SHOW BACKENDS", "Host")
	if err != nil {
		return err
	}
	ports, err := s.db.column(ctx, "SHOW BACKENDS", "HeartbeatPort")
	if err != nil {
		return err
	}
	i := slices.Index(hosts, s.db.host(pod, "be"))
	if i < 0 || len(ports) != len(hosts) {
		return fmt.Errorf("%s is none of %v", pod, hosts)
	}
	return s.db.exec(ctx, fmt.Sprintf(`ALTER SYSTEM MODIFY BACKEND "%s:%s" SET (%s)`, hosts[i], ports[i], tags))
}

// balances patches the status of the Service, as a controller of load balancers does: the
// cluster has none.
func balances(address string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			service := &corev1.Service{}
			if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "doris-be-service"}, service); err != nil {
				return err
			}
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: address}}
			return s.client.Status().Update(ctx, service, client.FieldOwner("a-load-balancer"))
		})
	}
}

// reachableBy says which backend is not known by an address outside, or lost what else
// is said of it. No address is that of none.
func reachableBy(address string) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		hosts, err := s.db.column(ctx, "SHOW BACKENDS", "Host")
		if err != nil {
			return err.Error()
		}
		ports, err := s.db.column(ctx, "SHOW BACKENDS", "HttpPort")
		if err != nil {
			return err.Error()
		}
		tags, err := s.db.column(ctx, "SHOW BACKENDS", "Tag")
		if err != nil || len(tags) != 3 || len(ports) != 3 {
			return fmt.Sprintf("the tags are %v, %v", tags, err)
		}
		for i, host := range hosts {
			want := fmt.Sprintf(`{"location":"default","private_endpoint":"%s:%s","public_endpoint":"%s:8040"}`, host, ports[i], address)
			switch {
			case strings.HasPrefix(host, "doris-be-2."):
				want = `{"location":"rack_b","public_endpoint":"` + theirs + `"}`
			case address == "":
				want = `{"location":"default"}`
			}
			if tags[i] != want {
				return fmt.Sprintf("the tags of %s are %s, and not %s", host, tags[i], want)
			}
		}
		return ""
	}
}

// notPublished says what is missing until the condition says why addresses outside are
// not known; no reason is that it says nothing.
func notPublished(reason string, and func(context.Context, *scene) string) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := settledCluster(ctx, s); missing != "" {
			return missing
		}
		dc, err := s.doris(ctx)
		if err != nil {
			return err.Error()
		}
		says := ""
		if c := apimeta.FindStatusCondition(dc.Status.Conditions, meta.ConditionEndpointsPublished); c != nil {
			says = c.Reason
		}
		if says != reason {
			return fmt.Sprintf("why addresses are not published is %q, and not %q", says, reason)
		}
		return and(ctx, s)
	}
}

// awaits waits until nothing is missing.
func awaits(unsettled func(context.Context, *scene) string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		s.op.launch()
		return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			return unsettled(ctx, s) == "", nil
		})
	}
}

var (
	endpointsGiven = tale{
		name: "backends get the address of their load balancer, and another one", database: true, setup: createsBalanced,
		act: inTurn(awaits(notPublished(meta.ReasonWaitingForAddress, reachableBy(""))), balances("one.example.org"), awaits(reachableBy("one.example.org")),
			balances("two.example.org")),
		unsettled: notPublished(meta.ReasonSetBySomebody, reachableBy("two.example.org")),
	}
	endpointsTakenBack = tale{
		name: "the address of the load balancer is taken back", database: true,
		setup: inTurn(createsBalanced, balances("one.example.org"), awaits(reachableBy("one.example.org"))),
		act:   edits(func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.StreamLoadEndpoint = dorisv1.EndpointBackend }), unsettled: notPublished("", reachableBy("")),
	}
)
