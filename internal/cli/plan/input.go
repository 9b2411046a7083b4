package plan

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
)

// inputs are the resources to plan for, and what counts as applied with them.
type inputs struct {
	clusters   []*dorisv1.DorisCluster
	configMaps map[client.ObjectKey]*corev1.ConfigMap
}

func (o *options) inputs(ctx context.Context, c client.Reader, namespace string, names []string) (inputs, error) {
	in := inputs{configMaps: map[client.ObjectKey]*corev1.ConfigMap{}}
	for _, name := range names {
		dc := &dorisv1.DorisCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, dc); err != nil {
			return in, fmt.Errorf("reading DorisCluster %q in namespace %q: %w", name, namespace, err)
		}
		in.clusters = append(in.clusters, dc)
	}
	for _, f := range o.files {
		raw, err := o.read(f)
		if err != nil {
			return in, err
		}
		if err := in.add(raw, namespace); err != nil {
			return in, fmt.Errorf("%s: %w", f, err)
		}
	}
	if len(in.clusters) == 0 {
		return in, errors.New("no DorisCluster in the files")
	}
	for i, dc := range in.clusters {
		merged, err := onLive(ctx, c, dc)
		if err != nil {
			return in, err
		}
		in.clusters[i] = merged
	}
	return in, nil
}

func (o *options) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(o.In)
	}
	return os.ReadFile(file) //nolint:gosec // the user names the file to read
}

// add reads the documents of a file. An unknown field is refused, as a typing
// error would otherwise look like a change that does nothing.
func (in *inputs) add(raw []byte, namespace string) error {
	codec := serializer.NewCodecFactory(kube.Scheme(), serializer.EnableStrict).UniversalDeserializer()
	docs := utilyaml.NewYAMLReader(newBuffered(raw))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		obj, _, err := codec.Decode(doc, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			continue // another kind; it has no part in the plan
		}
		if err != nil {
			return err
		}
		switch x := obj.(type) {
		case *dorisv1.DorisCluster:
			if x.Namespace == "" {
				x.Namespace = namespace
			}
			in.clusters = append(in.clusters, x)
		case *corev1.ConfigMap:
			if x.Namespace == "" {
				x.Namespace = namespace
			}
			in.configMaps[client.ObjectKeyFromObject(x)] = x
		}
	}
}

// onLive puts the spec of a manifest on the resource that exists, if any.
func onLive(ctx context.Context, c client.Reader, dc *dorisv1.DorisCluster) (*dorisv1.DorisCluster, error) {
	have := &dorisv1.DorisCluster{}
	err := c.Get(ctx, client.ObjectKeyFromObject(dc), have)
	if apierrors.IsNotFound(err) {
		return dc, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading DorisCluster %q: %w", dc.Name, err)
	}
	merged := have.DeepCopy()
	merged.Spec = dc.Spec
	if merged.Annotations == nil {
		merged.Annotations = map[string]string{}
	}
	maps.Copy(merged.Annotations, dc.Annotations)
	return merged, nil
}

// overlay answers for the ConfigMaps of the files instead of the cluster's.
type overlay struct {
	client.Reader
	configMaps map[client.ObjectKey]*corev1.ConfigMap
}

func (in *inputs) reader(c client.Reader) client.Reader {
	return overlay{Reader: c, configMaps: in.configMaps}
}

// Get implements client.Reader.
func (o overlay) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if into, ok := obj.(*corev1.ConfigMap); ok {
		if cm, ok := o.configMaps[key]; ok {
			cm.DeepCopyInto(into)
			return nil
		}
	}
	return o.Reader.Get(ctx, key, obj, opts...)
}

func newBuffered(raw []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(raw)) }
