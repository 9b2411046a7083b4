package sim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Key names an object.
type Key struct {
	Kind schema.GroupVersionKind
	types.NamespacedName
}

// Store holds objects the way an API server does. Objects that it hands out
// are copies. It is safe for concurrent use.
type Store struct {
	scheme   *runtime.Scheme
	types    managedfields.TypeConverter
	managers map[schema.GroupVersionKind]*managedfields.FieldManager

	mu       sync.Mutex
	objects  map[Key]client.Object // never changed in place
	versions []Snapshot            // one for each write, oldest first
	version  int64
	uids     int64
}

// Snapshot is what the Store held at one time.
type Snapshot struct {
	Version int64
	objects map[Key]client.Object
}

// NewStore returns an empty Store for the kinds in scheme. Kinds that client-go
// does not know are merged as if they had no schema.
func NewStore(scheme *runtime.Scheme) *Store {
	s := &Store{
		scheme: scheme, types: applyconfigurations.NewTypeConverter(scheme),
		managers: map[schema.GroupVersionKind]*managedfields.FieldManager{},
		objects:  map[Key]client.Object{}, version: 1,
	}
	s.versions = []Snapshot{{Version: 1, objects: map[Key]client.Object{}}}
	return s
}

// Apply is server-side apply with force. It tells whether anything changed.
func (s *Store) Apply(intent client.Object, manager string) (client.Object, bool, error) {
	u, key, err := s.unstructured(intent)
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live, exists := s.objects[key]
	if !exists {
		if live, err = s.empty(key); err != nil {
			return nil, false, err
		}
	}
	fm, err := s.fieldManager(key.Kind)
	if err != nil {
		return nil, false, err
	}
	merged, err := fm.Apply(live.DeepCopyObject(), u, manager, true)
	if err != nil {
		return nil, false, fmt.Errorf("applying %s: %w", key.Name, err)
	}
	return s.put(key, merged, live, exists)
}

// Create stores a new object, as manager.
func (s *Store) Create(o client.Object, manager string) (client.Object, error) {
	key, err := s.key(o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.objects[key]; exists {
		return nil, apierrors.NewAlreadyExists(resource(key), key.Name)
	}
	blank, err := s.empty(key)
	if err != nil {
		return nil, err
	}
	made, _, err := s.update(key, blank, o, manager, false)
	return made, err
}

// Update replaces an object, as manager. With a resource version it is refused
// unless that is the live one.
func (s *Store) Update(o client.Object, manager string) (client.Object, error) {
	key, err := s.key(o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live, exists := s.objects[key]
	if !exists {
		return nil, apierrors.NewNotFound(resource(key), key.Name)
	}
	if v := o.GetResourceVersion(); v != "" && v != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(resource(key), key.Name, fmt.Errorf("it has been modified"))
	}
	updated, _, err := s.update(key, live, o, manager, true)
	return updated, err
}

func (s *Store) update(key Key, live, o client.Object, manager string, exists bool) (client.Object, bool, error) {
	fm, err := s.fieldManager(key.Kind)
	if err != nil {
		return nil, false, err
	}
	wanted, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil, false, fmt.Errorf("%T is not an object", o)
	}
	wanted.GetObjectKind().SetGroupVersionKind(key.Kind)
	fill(wanted)
	managed, err := fm.Update(live.DeepCopyObject(), wanted, manager)
	if err != nil {
		return nil, false, fmt.Errorf("updating %s: %w", key.Name, err)
	}
	return s.put(key, managed, live, exists)
}

// SetStatus changes the status of an object and nothing else.
func (s *Store) SetStatus(o client.Object) error {
	key, err := s.key(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live, exists := s.objects[key]
	if !exists {
		return apierrors.NewNotFound(resource(key), key.Name)
	}
	changed := copyOf(live)
	from, to := reflect.ValueOf(copyOf(o)).Elem().FieldByName("Status"), reflect.ValueOf(changed).Elem().FieldByName("Status")
	if !from.IsValid() || from.Type() != to.Type() {
		return fmt.Errorf("a %T has no status of a %T", o, live)
	}
	to.Set(from)
	_, _, err = s.put(key, changed, live, true)
	return err
}

// Delete removes an object at once, or marks it when grace is set. A uid that
// is not empty must be the live one.
func (s *Store) Delete(key Key, uid types.UID, grace bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	live, exists := s.objects[key]
	switch {
	case !exists:
		return apierrors.NewNotFound(resource(key), key.Name)
	case uid != "" && uid != live.GetUID():
		return apierrors.NewConflict(resource(key), key.Name, fmt.Errorf("precondition failed: uid is %s", live.GetUID()))
	case grace && live.GetDeletionTimestamp() != nil:
		return nil
	case grace:
		marked, ok := live.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", live)
		}
		marked.SetDeletionTimestamp(&metav1.Time{Time: epoch})
		s.commit(key, marked)
		return nil
	}
	s.commit(key, nil)
	return nil
}

// put stores the outcome of a write where it differs from what is live.
func (s *Store) put(key Key, outcome runtime.Object, live client.Object, exists bool) (client.Object, bool, error) {
	next, ok := outcome.(client.Object)
	if !ok {
		return nil, false, fmt.Errorf("%T is not an object", outcome)
	}
	next.GetObjectKind().SetGroupVersionKind(key.Kind)
	fill(next)
	if !exists {
		s.uids++
		next.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		next.SetCreationTimestamp(metav1.Time{Time: epoch})
		next.SetGeneration(1)
		assign(next, s.uids)
	} else {
		next.SetUID(live.GetUID())
		next.SetCreationTimestamp(live.GetCreationTimestamp())
		next.SetDeletionTimestamp(live.GetDeletionTimestamp())
		next.SetGeneration(live.GetGeneration())
		next.SetResourceVersion(live.GetResourceVersion())
		if err := immutable(key, live, next); err != nil {
			return nil, false, err
		}
		if !sameSpec(live, next) {
			next.SetGeneration(live.GetGeneration() + 1)
		}
		if sameObject(live, next) {
			return copyOf(live), false, nil
		}
	}
	s.commit(key, next)
	return copyOf(next), true, nil
}

// commit stores an object, or removes it when it is nil, under a new version.
func (s *Store) commit(key Key, o client.Object) {
	s.version++
	s.objects = maps.Clone(s.objects)
	if o == nil {
		delete(s.objects, key)
	} else {
		o.SetResourceVersion(strconv.FormatInt(s.version, 10))
		s.objects[key] = o
	}
	s.versions = append(s.versions, Snapshot{Version: s.version, objects: s.objects})
}

// Now returns what the Store holds.
func (s *Store) Now() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versions[len(s.versions)-1]
}

// Before returns what the Store held some writes ago, but not before the
// given version.
func (s *Store) Before(writes int, notBefore int64) Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := max(0, len(s.versions)-1-writes)
	for i < len(s.versions)-1 && s.versions[i].Version < notBefore {
		i++
	}
	return s.versions[i]
}

// Get returns a copy of an object; nil when there is none.
func (s Snapshot) Get(key Key) client.Object {
	if o, ok := s.objects[key]; ok {
		return copyOf(o)
	}
	return nil
}

// List returns copies of the objects of a kind, sorted by name.
func (s Snapshot) List(kind schema.GroupVersionKind, namespace string) []client.Object {
	var out []client.Object
	for key, o := range s.objects {
		if key.Kind == kind && (namespace == "" || key.Namespace == namespace) {
			out = append(out, copyOf(o))
		}
	}
	slices.SortFunc(out, func(a, b client.Object) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return out
}

func (s *Store) key(o client.Object) (Key, error) {
	gvk, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		return Key{}, err
	}
	return Key{Kind: gvk, NamespacedName: client.ObjectKeyFromObject(o)}, nil
}

func (s *Store) empty(key Key) (client.Object, error) {
	made, err := s.scheme.New(key.Kind)
	if err != nil {
		return nil, err
	}
	o, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", made)
	}
	o.GetObjectKind().SetGroupVersionKind(key.Kind)
	o.SetName(key.Name)
	o.SetNamespace(key.Namespace)
	return o, nil
}

func (s *Store) unstructured(o client.Object) (*unstructured.Unstructured, Key, error) {
	key, err := s.key(o)
	if err != nil {
		return nil, Key{}, err
	}
	// Through JSON, as on the wire.
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, Key{}, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return nil, Key{}, err
	}
	u.SetGroupVersionKind(key.Kind)
	return u, key, nil
}

func (s *Store) fieldManager(kind schema.GroupVersionKind) (*managedfields.FieldManager, error) {
	if fm, ok := s.managers[kind]; ok {
		return fm, nil
	}
	converter := runtime.UnsafeObjectConvertor(s.scheme)
	made, err := s.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	made.GetObjectKind().SetGroupVersionKind(kind)
	var fm *managedfields.FieldManager
	if _, unknown := s.types.ObjectToTyped(made); unknown == nil {
		fm, err = managedfields.NewDefaultFieldManager(s.types, converter, defaulter{}, s.scheme, kind, kind.GroupVersion(), "", nil)
	} else {
		fm, err = managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), converter, defaulter{}, s.scheme, kind, kind.GroupVersion(), "", nil)
	}
	if err != nil {
		return nil, err
	}
	s.managers[kind] = fm
	return fm, nil
}

func resource(key Key) schema.GroupResource {
	plural, _ := apimeta.UnsafeGuessKindToResource(key.Kind)
	return plural.GroupResource()
}

func copyOf(o client.Object) client.Object {
	c, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		panic(fmt.Sprintf("a copy of %T is no object", o))
	}
	return c
}

// sameObject compares two objects but for the times of their managed fields,
// as the API server does to find writes that change nothing.
func sameObject(a, b client.Object) bool {
	x, y := copyOf(a), copyOf(b)
	for _, o := range []client.Object{x, y} {
		managed := o.GetManagedFields()
		for i := range managed {
			managed[i].Time = nil
		}
		o.SetManagedFields(managed)
	}
	return equality.Semantic.DeepEqual(x, y)
}

// sameSpec compares everything but metadata and status.
func sameSpec(a, b client.Object) bool {
	x, errX := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	y, errY := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	if errX != nil || errY != nil {
		return false
	}
	for _, o := range []map[string]any{x, y} {
		delete(o, "metadata")
		delete(o, "status")
	}
	return equality.Semantic.DeepEqual(x, y)
}
