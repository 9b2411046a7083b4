package sim

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// Patch applies a JSON merge patch to an object, as manager. A uid or a resource
// version in it must be the live one.
func (s *Store) Patch(key Key, body []byte, manager string) (client.Object, error) {
	live := s.Now().Get(key)
	if live == nil {
		return nil, apierrors.NewNotFound(resource(key), key.Name)
	}
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", key.Name, err)
	}
	next, err := s.empty(key)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(after, next); err != nil {
		return nil, err
	}
	if next.GetUID() != live.GetUID() {
		return nil, apierrors.NewConflict(resource(key), key.Name, fmt.Errorf("precondition failed: uid is %s", live.GetUID()))
	}
	return s.Update(next, manager)
}
