package apply

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestDenied holds that a missing right is told from what is refused for what it is:
// both have the same code, and only the second leads to another way.
func TestDenied(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"the role lacks the verb":                {apierrors.NewForbidden(pods, "be-0", errors.New(`User "system:serviceaccount:a:b" cannot patch resource "pods/resize" in API group "" in the namespace "n"`)), true},
		"the role lacks another verb":            {apierrors.NewForbidden(pods, "be-0", errors.New(`User "system:serviceaccount:a:b" cannot delete resource "pods" in API group "" in the namespace "n"`)), true},
		"a quota is used up":                     {apierrors.NewForbidden(pods, "be-0", errors.New("exceeded quota: q, requested: memory=2Gi, used: memory=1Gi, limited: memory=2Gi")), false},
		"a webhook says no":                      {apierrors.NewForbidden(pods, "be-0", errors.New(`admission webhook "w" denied the request: too large`)), false},
		"the sizes are no sizes":                 {apierrors.NewBadRequest(`cannot patch resource "x"`), false},
		"the API server has no such subresource": {apierrors.NewNotFound(pods, "be-0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Denied(fmt.Errorf("resizing Pod/be-0: %w", tc.err)); got != tc.want {
				t.Errorf("Denied says %t of %v", got, tc.err)
			}
		})
	}
}
