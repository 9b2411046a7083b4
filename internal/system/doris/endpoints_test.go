package doris

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// Tag implements Tagger.
func (d *databaseDouble) Tag(_ context.Context, _ databaseAddress, member client.Node, from, to map[string]string) error {
	pod := podOfHost(member.Host)
	if b := d.row(pod); b != nil && d.between != nil {
		d.between(b)
	}
	if needed, err := tagsNeeded(d.backends, member, from, to); err != nil || !needed {
		return err
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(to)) {
		words = append(words, key+"="+to[key])
	}
	d.statements = append(d.statements, "TAG "+pod+" "+strings.Join(words, " "))
	if _, recorded := endpointsOn(d.world.set(pod[:strings.LastIndexByte(pod, '-')])).Members[member.String()]; !recorded {
		d.world.Errorf("the tags of %s are set, and nothing says so", pod)
	}
	if d.noTags != "" {
		return &client.Error{Op: "set the tags", Kind: client.ErrRefused, Text: d.noTags}
	}
	d.row(pod).Tag.All = maps.Clone(to)
	if d.losing {
		d.losing = false
		return errors.New("the connection broke")
	}
	return nil
}

// published wants two backends to be known by the address of their load balancer.
const published = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-1", persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 2, streamLoadEndpoint: LoadBalancer, service: {type: LoadBalancer}, image: "apache/doris:be-1", persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
`

// balanced gives the load balancer of the backends an address, or takes it.
func (w *world) balanced(ingress ...corev1.LoadBalancerIngress) {
	w.Helper()
	service := object(w, "doris-be-service", &corev1.Service{})
	service.Status.LoadBalancer.Ingress = ingress
	w.must(w.store.SetStatus(service))
}

// tagsAre holds which tags the database has of a backend.
func (w *world) tagsAre(t *testing.T, pod string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, w.db.row(pod).Tag.All); diff != "" {
		t.Errorf("tags of %s (-want +got):\n%s", pod, diff)
	}
}

func tagsWith(pod, public string) map[string]string {
	return map[string]string{"location": "default", "public_endpoint": public, "private_endpoint": hostOf(pod) + ":8040"}
}

func ip(a string) corev1.LoadBalancerIngress { return corev1.LoadBalancerIngress{IP: a} }

func TestEndpoints(t *testing.T) {
	t.Parallel()
	const first, second = "203.0.113.7:8040", "203.0.113.8:8040"
	open := func(t *testing.T) *world {
		t.Helper()
		w := memberCluster(t, published)
		w.balanced(ip("203.0.113.7"))
		w.lives()
		for _, pod := range []string{"doris-be-0", "doris-be-1"} {
			w.tagsAre(t, pod, tagsWith(pod, first))
		}
		return w
	}
	t.Run("nothing is said before there is an address, which is told", func(t *testing.T) {
		w := memberCluster(t, published)
		if got := condition(w.dc, meta.ConditionEndpointsPublished); !strings.HasPrefix(got, "False WaitingForAddress: the load balancer of Service doris-be-service has no address yet") {
			t.Errorf("EndpointsPublished is %q", got)
		}
		w.balanced(ip("203.0.113.7"))
		w.lives()
		w.statements(t,
			"TAG doris-be-0 location=default private_endpoint="+hostOf("doris-be-0")+":8040 public_endpoint="+first,
			"TAG doris-be-1 location=default private_endpoint="+hostOf("doris-be-1")+":8040 public_endpoint="+first)
		if got := condition(w.dc, meta.ConditionEndpointsPublished); got != "" {
			t.Errorf("EndpointsPublished is %q", got)
		}
	})
	t.Run("other tags stay", func(t *testing.T) {
		w := memberCluster(t, published)
		w.db.row("doris-be-1").Tag.All = map[string]string{"location": "rack_b", "shelf": "three"}
		w.balanced(ip("203.0.113.7"))
		w.lives()
		want := tagsWith("doris-be-1", first)
		want["location"], want["shelf"] = "rack_b", "three"
		w.tagsAre(t, "doris-be-1", want)
	})
	t.Run("another address is followed, also while its answers get lost", func(t *testing.T) {
		w := open(t)
		w.balanced(ip("203.0.113.8"))
		w.db.losing = true
		w.lives()
		for _, pod := range []string{"doris-be-0", "doris-be-1"} {
			w.tagsAre(t, pod, tagsWith(pod, second))
		}
		if len(w.db.statements) != 4 {
			t.Errorf("statements are %v", w.db.statements)
		}
		if got := endpointsOn(w.set("doris-be")).Members[hostOf("doris-be-0")+":9050"]; !slices.Equal(got, []string{second}) {
			t.Errorf("recorded is %v", got)
		}
	})
	t.Run("one that registers anew gets it again", func(t *testing.T) {
		w := open(t)
		w.db.row("doris-be-0").Tag.All = map[string]string{"location": "default"}
		w.now = w.now.Add(2 * time.Minute)
		w.lives()
		w.tagsAre(t, "doris-be-0", tagsWith("doris-be-0", first))
	})
	t.Run("a load balancer without its address changes nothing", func(t *testing.T) {
		w := open(t)
		w.balanced()
		w.lives()
		w.tagsAre(t, "doris-be-0", tagsWith("doris-be-0", first))
	})
	t.Run("taken back when nobody asks for it any more", func(t *testing.T) {
		for name, edit := range map[string]func(*dorisv1.DorisClusterSpec){
			"the field":   func(s *dorisv1.DorisClusterSpec) { s.BeSpec.StreamLoadEndpoint = "" },
			"the Service": func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Service.Type = corev1.ServiceTypeClusterIP },
		} {
			w := open(t)
			w.db.row("doris-be-1").Tag.All["location"] = "rack_b"
			w.edit(edit)
			w.now = w.now.Add(2 * time.Minute)
			w.lives()
			w.tagsAre(t, "doris-be-0", map[string]string{"location": "default"})
			w.tagsAre(t, "doris-be-1", map[string]string{"location": "rack_b"})
			if text := w.set("doris-be").Annotations[meta.AnnotationEndpoints]; text != "" {
				t.Errorf("%s: still recorded is %s", name, text)
			}
		}
	})
	t.Run("what somebody else set stays, whatever the spec says", func(t *testing.T) {
		w := memberCluster(t, published)
		theirs := map[string]string{"location": "default", "public_endpoint": "loads.example.org:443", "private_endpoint": "10.1.2.3:80"}
		w.db.row("doris-be-1").Tag.All = theirs
		w.balanced(ip("203.0.113.7"))
		w.lives()
		w.tagsAre(t, "doris-be-0", tagsWith("doris-be-0", first))
		w.tagsAre(t, "doris-be-1", theirs)
		if got := condition(w.dc, meta.ConditionEndpointsPublished); got != "False SetBySomebody: public_endpoint of the backends was set by somebody else and stays: doris-be-1 has loads.example.org:443; the operator would set "+first {
			t.Errorf("EndpointsPublished is %q", got)
		}
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.StreamLoadEndpoint = "" })
		w.lives()
		w.tagsAre(t, "doris-be-1", theirs)
		w.tagsAre(t, "doris-be-0", map[string]string{"location": "default"})
	})
	t.Run("a private endpoint of somebody else stays", func(t *testing.T) {
		w := memberCluster(t, published)
		w.db.row("doris-be-0").Tag.All = map[string]string{"location": "default", "private_endpoint": "10.1.2.3:80"}
		w.balanced(ip("203.0.113.7"))
		w.lives()
		w.tagsAre(t, "doris-be-0", map[string]string{"location": "default", "public_endpoint": first, "private_endpoint": "10.1.2.3:80"})
	})
	t.Run("the same, set by somebody else, is not taken back", func(t *testing.T) {
		w := memberCluster(t, published)
		theirs := map[string]string{"location": "default", "public_endpoint": first}
		for i := range w.db.backends {
			w.db.backends[i].Tag.All = maps.Clone(theirs)
		}
		w.balanced(ip("203.0.113.7"))
		w.lives()
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.StreamLoadEndpoint = "" })
		w.lives()
		w.statements(t)
		w.tagsAre(t, "doris-be-0", theirs)
	})
	t.Run("somebody comes between", func(t *testing.T) {
		w := memberCluster(t, published)
		w.db.between = func(b *client.Backend) { b.Tag.All, w.db.between = map[string]string{"location": "rack_b"}, nil }
		w.balanced(ip("203.0.113.7"))
		w.lives()
		want := tagsWith("doris-be-0", first)
		want["location"] = "rack_b"
		w.tagsAre(t, "doris-be-0", want)
	})
	t.Run("without the field nothing is said", func(t *testing.T) {
		w := memberCluster(t, strings.Replace(published, "streamLoadEndpoint: LoadBalancer, ", "", 1))
		w.balanced(ip("203.0.113.7"))
		w.lives()
		w.statements(t)
		if got := condition(w.dc, meta.ConditionEndpointsPublished); got != "" {
			t.Errorf("EndpointsPublished is %q", got)
		}
	})
}

// TestEndpointsRefused holds that a database that does not take them is told once.
func TestEndpointsRefused(t *testing.T) {
	t.Parallel()
	t.Run("an old version is not told at all", func(t *testing.T) {
		w := memberCluster(t, published)
		w.db.frontends[0].Version = "doris-3.0.8-rc01"
		w.balanced(ip("203.0.113.7"))
		w.now = w.now.Add(2 * time.Minute)
		w.lives()
		w.statements(t)
		if got := condition(w.dc, meta.ConditionEndpointsPublished); got != "False VersionTooOld: Doris 3.0.8 knows no addresses outside for stream loads: upgrade to 3.1.0, or take spec.beSpec.streamLoadEndpoint out" {
			t.Errorf("EndpointsPublished is %q", got)
		}
		if text := w.set("doris-be").Annotations[meta.AnnotationEndpoints]; text != "" {
			t.Errorf("recorded is %s", text)
		}
	})
	t.Run("a refusal is said, and nothing is tried again before the master starts anew", func(t *testing.T) {
		w := memberCluster(t, published)
		w.db.noTags = "Not support multi tags for Backend now"
		w.balanced(ip("203.0.113.7"))
		w.lives()
		tried := len(w.db.statements)
		for range 200 {
			w.reconcile()
			w.db.goesOn()
			w.now = w.now.Add(time.Minute)
		}
		if n := len(w.db.statements); n != tried || n == 0 || n > 2 {
			t.Errorf("%d statements at first, %d after hours: %v", tried, n, w.db.statements)
		}
		if got := condition(w.dc, meta.ConditionEndpointsPublished); !strings.HasPrefix(got, "False EndpointRefused: the database refuses public_endpoint of the backends: ") || !strings.Contains(got, "multi tags") {
			t.Errorf("EndpointsPublished is %q", got)
		}
		if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
			t.Errorf("Ready is %q", got)
		}
		w.db.noTags, w.db.frontends[0].LastStartTime = "", "2026-12-01 10:00:00"
		w.now = w.now.Add(2 * time.Minute)
		w.lives()
		w.tagsAre(t, "doris-be-1", tagsWith("doris-be-1", "203.0.113.7:8040"))
		if got := condition(w.dc, meta.ConditionEndpointsPublished); got != "" {
			t.Errorf("EndpointsPublished is %q", got)
		}
	})
	t.Run("a load balancer that there is none of is named", func(t *testing.T) {
		dc := memberCluster(t, strings.Replace(published, "service: {type: LoadBalancer}", "service: {type: NodePort}", 1)).dc
		for _, f := range Validate(dc) {
			if f.Field == "spec.beSpec.streamLoadEndpoint" && f.Reason == meta.ReasonNoEffect {
				return
			}
		}
		t.Error("it is not said that the field has no effect")
	})
}

// TestEndpointsInThePlugin holds that a plan made without the database names what the
// operator will say to it, and nothing where all is said.
func TestEndpointsInThePlugin(t *testing.T) {
	t.Parallel()
	w := memberCluster(t, published)
	notes := func() (out []string) {
		_, observed := w.plan(w.store.Now())
		observed.Database = nil
		p, err := New(testEngine).Plan(w.dc, observed, w.now)
		w.must(err)
		for _, c := range p.Changes {
			if c.Path == endpointPath {
				out = append(out, fmt.Sprintf("%s %q to %q", c.Object.Name, c.From, c.To))
			}
		}
		return out
	}
	w.balanced(ip("203.0.113.7"))
	w.dc.Status.Conditions = slices.DeleteFunc(w.dc.Status.Conditions, func(c metav1.Condition) bool { return c.Type == meta.ConditionEndpointsPublished })
	if diff := cmp.Diff([]string{`doris-be-0 "" to "203.0.113.7:8040"`, `doris-be-1 "" to "203.0.113.7:8040"`}, notes()); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	w.lives()
	if got := notes(); len(got) > 0 {
		t.Errorf("after all is said: %v", got)
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.StreamLoadEndpoint = "" })
	if diff := cmp.Diff([]string{`doris-be-0 "203.0.113.7:8040" to ""`, `doris-be-1 "203.0.113.7:8040" to ""`}, notes()); diff != "" {
		t.Errorf("taken back (-want +got):\n%s", diff)
	}
}

// TestOutside picks the address of a load balancer.
func TestOutside(t *testing.T) {
	t.Parallel()
	name := corev1.LoadBalancerIngress{Hostname: "lb.example.org", IP: "203.0.113.9"}
	for want, ingress := range map[string][]corev1.LoadBalancerIngress{
		"":                    nil,
		"lb.example.org:8041": {name, ip("203.0.113.7")},
		"203.0.113.7:8041":    {ip("2001:db8::1"), ip("203.0.113.7")},
		"[2001:db8::1]:8041":  {ip("2001:db8::1")},
		"203.0.113.10:8041":   {{}, ip("203.0.113.10")},
	} {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "be-port", Port: 9060}, {Name: portWeb, Port: 8041}}}}
		s.Status.LoadBalancer.Ingress = ingress
		if got := outside(s); got != want {
			t.Errorf("%v gives %q, want %q", ingress, got, want)
		}
		s.Spec.Type = corev1.ServiceTypeClusterIP
		if got := outside(s); got != "" {
			t.Errorf("a Service of another type gives %q", got)
		}
	}
}
