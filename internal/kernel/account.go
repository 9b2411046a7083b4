package kernel

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SecretData reads the data of one Secret by name; live must not be a cache. It is
// the only place of the operator that does, and nothing of it is kept. Without the
// Secret the answer is nil.
func SecretData(ctx context.Context, live client.Reader, namespace, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // no Secret is an answer
	case err != nil:
		return nil, fmt.Errorf("reading Secret %q: %w", name, err)
	case secret.Data == nil:
		return map[string][]byte{}, nil
	}
	return secret.Data, nil
}
