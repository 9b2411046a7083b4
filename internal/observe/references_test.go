package observe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// liveDouble is a test double of the API server's reads: ConfigMaps and
// Secrets by name, each with a version that counts up.
type liveDouble struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]int
	gets     atomic.Int64
	during   func(types.NamespacedName) error // called within each read, after the answer is made
}

func newLive() *liveDouble { return &liveDouble{versions: map[types.NamespacedName]int{}} }

func (l *liveDouble) change(key types.NamespacedName) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions[key]++
	return strconv.Itoa(l.versions[key])
}

func (l *liveDouble) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	l.gets.Add(1)
	l.mu.Lock()
	v, exists := l.versions[key]
	l.mu.Unlock()
	if l.during != nil {
		if err := l.during(key); err != nil {
			return err
		}
	}
	if !exists {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, key.Name)
	}
	o.SetName(key.Name)
	o.SetNamespace(key.Namespace)
	o.SetResourceVersion(strconv.Itoa(v))
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "somebody"}})
	if cm, ok := o.(*corev1.ConfigMap); ok {
		cm.Data = map[string]string{"v": strconv.Itoa(v)}
	} else {
		o.SetAnnotations(map[string]string{"secret": "hunter2"})
	}
	return nil
}

func (l *liveDouble) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody may list")
}

var (
	anna  = types.NamespacedName{Namespace: "ns", Name: "anna"}
	berta = types.NamespacedName{Namespace: "ns", Name: "berta"}
	conf  = types.NamespacedName{Namespace: "ns", Name: "conf"}
)

// fixture is a References with what it did.
type fixture struct {
	*References
	live   *liveDouble
	mu     sync.Mutex
	notify []string
}

func newFixture() *fixture {
	f := &fixture{live: newLive()}
	f.References = NewReferences(f.live, func(n types.NamespacedName) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.notify = append(f.notify, n.Name)
	})
	return f
}

func (f *fixture) notified() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := fmt.Sprint(f.notify)
	f.notify = nil
	return out
}

// read is one reconcile that reads one ConfigMap; it returns its content, "-"
// when there is none.
func (f *fixture) read(t testing.TB, user types.NamespacedName, keys ...types.NamespacedName) string {
	t.Helper()
	l := f.Lease(user)
	defer l.Close()
	out := ""
	for _, k := range keys {
		cm, err := l.ConfigMap(context.Background(), k)
		if err != nil {
			t.Fatal(err)
		}
		if cm == nil {
			out += "-"
			continue
		}
		out += cm.Data["v"]
	}
	return out
}

func expect(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func configMapRef(k types.NamespacedName) referred { return referred{kind: "ConfigMap", key: k} }

func TestReferencesReadOncePerChange(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	for range 3 {
		expect(t, "anna reads", f.read(t, anna, conf), "1")
		expect(t, "berta reads", f.read(t, berta, conf), "1")
	}
	expect(t, "reads", fmt.Sprint(f.live.gets.Load()), "1")

	f.announce(configMapRef(conf), "1") // the watch catches up with the read
	expect(t, "woken by no news", f.notified(), "[]")
	f.announce(configMapRef(conf), f.live.change(conf))
	expect(t, "woken by a change", f.notified(), "[anna berta]")
	f.announce(configMapRef(types.NamespacedName{Namespace: "ns", Name: "other"}), "9")
	f.announce(configMapRef(types.NamespacedName{Namespace: "elsewhere", Name: "conf"}), "9")
	f.announce(referred{kind: "Secret", key: conf}, "9")
	expect(t, "woken by others of the name", f.notified(), "[]")
	expect(t, "anna reads the change", f.read(t, anna, conf), "2")
	expect(t, "berta reads the change", f.read(t, berta, conf), "2")
	expect(t, "reads", fmt.Sprint(f.live.gets.Load()), "2")
}

func TestReferencesReadBeforeTheWatchIsNoNewsWhenItCatchesUp(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	f.live.change(conf)
	expect(t, "anna reads", f.read(t, anna, conf), "2")
	f.announce(configMapRef(conf), "1") // an older event arrives late
	f.announce(configMapRef(conf), "2")
	expect(t, "woken", f.notified(), "[]")
	expect(t, "anna reads", f.read(t, anna, conf), "2")
	expect(t, "reads", fmt.Sprint(f.live.gets.Load()), "1")
}

func TestReferencesToWhatIsMissing(t *testing.T) {
	f := newFixture()
	expect(t, "anna reads", f.read(t, anna, conf), "-")
	expect(t, "anna reads again", f.read(t, anna, conf), "-")
	expect(t, "reads", fmt.Sprint(f.live.gets.Load()), "1")
	f.announce(configMapRef(conf), "") // still not there
	expect(t, "woken", f.notified(), "[]")
	f.announce(configMapRef(conf), f.live.change(conf))
	expect(t, "woken by its creation", f.notified(), "[anna]")
	expect(t, "anna reads", f.read(t, anna, conf), "1")
	f.live.mu.Lock()
	delete(f.live.versions, conf)
	f.live.mu.Unlock()
	f.announce(configMapRef(conf), "")
	expect(t, "woken by its deletion", f.notified(), "[anna]")
	expect(t, "anna reads", f.read(t, anna, conf), "-")
}

func TestReferencesChangedDuringTheRead(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	f.live.during = func(types.NamespacedName) error {
		f.live.during = nil
		f.announce(configMapRef(conf), f.live.change(conf))
		return nil
	}
	expect(t, "anna reads what was there", f.read(t, anna, conf), "1")
	expect(t, "anna is asked for another round", f.notified(), "[anna]")
	expect(t, "anna reads the change", f.read(t, anna, conf), "2")
	expect(t, "reads", fmt.Sprint(f.live.gets.Load()), "2")
}

func TestReferencesAnnouncedDuringTheReadThatAlreadyHasIt(t *testing.T) {
	f := newFixture()
	v := f.live.change(conf)
	f.live.during = func(types.NamespacedName) error {
		f.live.during = nil
		f.announce(configMapRef(conf), v)
		return nil
	}
	expect(t, "anna reads", f.read(t, anna, conf), "1")
	expect(t, "anna reads again", f.read(t, anna, conf), "1")
	expect(t, "reads", fmt.Sprint(f.live.gets.Load()), "1")
}

func TestReferencesDeletedDuringTheRead(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	f.live.during = func(types.NamespacedName) error {
		f.live.during = nil
		f.announce(configMapRef(conf), "")
		return nil
	}
	f.read(t, anna, conf)
	f.read(t, anna, conf)
	expect(t, "reads", fmt.Sprint(f.live.gets.Load()), "2")
}

func TestReferencesFailedReadIsNotKept(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	f.live.during = func(types.NamespacedName) error { f.live.during = nil; return errors.New("try later") }
	l := f.Lease(anna)
	if _, err := l.ConfigMap(t.Context(), conf); err == nil {
		t.Error("no error")
	}
	l.Close()
	f.announce(configMapRef(conf), "1")
	expect(t, "woken, for it may help", f.notified(), "[anna]")
	expect(t, "anna reads", f.read(t, anna, conf), "1")
}

func TestReferencesReadThatPanicsLocksNobodyOut(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	f.live.during = func(types.NamespacedName) error { f.live.during = nil; panic("for a test") }
	func() {
		defer func() { _ = recover() }()
		f.read(t, anna, conf)
	}()
	expect(t, "berta reads", f.read(t, berta, conf), "1")
}

func TestReferencesOfManyAtOnceAreReadOnce(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	entered, release := make(chan struct{}), make(chan struct{})
	f.live.during = func(types.NamespacedName) error {
		close(entered) // a second read would panic here
		<-release
		return nil
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			expect(t, "reads", f.read(t, types.NamespacedName{Namespace: "ns", Name: strconv.Itoa(i)}, conf), "1")
		})
	}
	<-entered
	close(release)
	all.Wait()
	expect(t, "reads", fmt.Sprint(f.live.gets.Load()), "1")
}

func TestReferencesWaitingForAnothersReadEndsWithTheContext(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	entered, release := make(chan struct{}), make(chan struct{})
	f.live.during = func(types.NamespacedName) error { close(entered); <-release; return nil }
	var other sync.WaitGroup
	other.Go(func() { f.read(t, anna, conf) })
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	l := f.Lease(berta)
	if _, err := l.ConfigMap(ctx, conf); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v", err)
	}
	l.Close()
	close(release)
	other.Wait()
}

func TestReferencesKeepOnlyWhatIsNamed(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	other := types.NamespacedName{Namespace: "ns", Name: "other"}
	f.read(t, anna, conf, other)
	f.read(t, berta, conf)
	f.read(t, anna, other) // anna no longer names conf
	f.announce(configMapRef(conf), f.live.change(conf))
	expect(t, "woken", f.notified(), "[berta]")
	f.Forget(berta)
	f.announce(configMapRef(conf), f.live.change(conf))
	expect(t, "woken", f.notified(), "[]")
	f.read(t, anna)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.entries) != 0 || len(f.byUser) != 0 {
		t.Errorf("kept: %v, %v", f.entries, f.byUser)
	}
}

func TestReferencesOfSecretsHoldNoData(t *testing.T) {
	f := newFixture()
	f.live.change(conf)
	l := f.Lease(anna)
	defer l.Close()
	s, err := l.Secret(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	if s.ResourceVersion != "1" || s.Name != "conf" || len(s.Annotations) != 0 || len(s.ManagedFields) != 0 {
		t.Errorf("Secret = %+v", s)
	}
	cm, err := l.ConfigMap(t.Context(), conf)
	if err != nil || cm.ManagedFields != nil {
		t.Errorf("ConfigMap = %+v, %v", cm, err)
	}
	if none, err := l.Secret(t.Context(), anna); none != nil || err != nil {
		t.Errorf("missing Secret = %v, %v", none, err)
	}
}

func metadataObject(ns, name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, ResourceVersion: version}}
}

func TestAnnouncerAfterANewList(t *testing.T) {
	f := newFixture()
	kept, changed, gone, absent := conf, anna, berta, types.NamespacedName{Namespace: "ns", Name: "absent"}
	f.live.change(kept)
	f.live.change(changed)
	f.live.change(gone)
	for _, k := range []types.NamespacedName{kept, changed, gone, absent} {
		f.read(t, types.NamespacedName{Namespace: "ns", Name: "user-of-" + k.Name}, k)
	}
	elsewhere := types.NamespacedName{Namespace: "elsewhere", Name: "conf"}
	f.live.change(elsewhere)
	f.read(t, types.NamespacedName{Namespace: "elsewhere", Name: "user"}, elsewhere)
	a := &announcer{refs: f.References, kind: "ConfigMap", namespace: "ns"}
	if err := a.Replace([]any{metadataObject("ns", kept.Name, "1"), metadataObject("ns", changed.Name, "2"), metadataObject("ns", "stranger", "3")}, ""); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, n := range f.notify {
		got[n] = true
	}
	expect(t, "woken", fmt.Sprint(got), fmt.Sprint(map[string]bool{"user-of-anna": true, "user-of-berta": true}))
	if err := a.Replace([]any{"no metadata"}, ""); err == nil {
		t.Error("no error for something that is no metadata")
	}
}

func TestAnnouncerStripsWhatItIsNotAskedFor(t *testing.T) {
	a := &announcer{}
	m := metadataObject("ns", "n", "1")
	m.Labels = map[string]string{"l": "x"}
	m.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	m.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
	got, err := a.Transformer()(m)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := got.(*metav1.PartialObjectMetadata)
	if !ok || s.Name != "n" || s.Namespace != "ns" || s.ResourceVersion != "1" || len(s.Labels)+len(s.Annotations)+len(s.ManagedFields)+len(s.OwnerReferences) != 0 {
		t.Errorf("kept %+v", got)
	}
	m.Annotations[metav1.InitialEventsAnnotationKey] = "true"
	if got, err = a.Transformer()(m); err != nil {
		t.Fatal(err)
	}
	if s, ok = got.(*metav1.PartialObjectMetadata); !ok || len(s.Annotations) != 1 {
		t.Errorf("the end of a streaming list is lost: %+v", got)
	}
	if other, err := a.Transformer()("other"); other != "other" || err != nil {
		t.Errorf("something else became %v, %v", other, err)
	}
}

// Many users, changes and lists at once: nobody is left with old content that
// was announced, and what nobody names is not kept.
func TestReferencesUnderStress(t *testing.T) {
	f := newFixture()
	var objects, users []types.NamespacedName
	for i := range 5 {
		objects = append(objects, types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("object-", i)})
	}
	for i := range 12 {
		users = append(users, types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("user-", i)})
	}
	woken := make([]chan struct{}, len(users))
	for i := range woken {
		woken[i] = make(chan struct{}, 1)
	}
	f.References = NewReferences(f.live, func(n types.NamespacedName) {
		var i int
		if _, err := fmt.Sscanf(n.Name, "user-%d", &i); err != nil {
			t.Error(err)
			return
		}
		select {
		case woken[i] <- struct{}{}:
		default:
		}
	})
	writing, stop := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			a := &announcer{refs: f.References, kind: "ConfigMap", namespace: "ns"}
			for range 300 {
				k := objects[rnd.IntN(len(objects))]
				v := f.live.change(k)
				if rnd.IntN(10) == 0 {
					f.live.mu.Lock()
					var list []any
					for key, version := range f.live.versions {
						list = append(list, metadataObject(key.Namespace, key.Name, strconv.Itoa(version)))
					}
					f.live.mu.Unlock()
					_ = a.Replace(list, "")
				}
				_ = a.Update(metadataObject(k.Namespace, k.Name, v))
			}
		})
	}
	last := make([]string, len(users))
	for i, u := range users {
		readers.Go(func() {
			for {
				last[i] = f.read(t, u, objects[i%len(objects)], objects[(i+1)%len(objects)])
				select {
				case <-woken[i]:
				case <-writing.Done():
					select { // everything was announced by now
					case <-woken[i]:
						continue
					default:
						return
					}
				}
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
	for i := range users {
		want := fmt.Sprintf("%d%d", f.live.versions[objects[i%len(objects)]], f.live.versions[objects[(i+1)%len(objects)]])
		expect(t, "last read of "+users[i].Name, last[i], want)
		f.Forget(users[i])
	}
	if len(f.entries) != 0 || len(f.byUser) != 0 {
		t.Errorf("kept although nobody is left: %v", f.entries)
	}
}
