package truth

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/demo"
	"github.com/fairlead-dev/fairlead/test/story"
)

// versions are those between which images are drawn.
var versions = []string{"2.1.8", "2.1.9", "2.1.10"}

type logged struct{ t *testing.T }

func (l logged) Write(p []byte) (int, error) {
	l.t.Log(string(p))
	return len(p), nil
}

// runsOnNode has the operator in a Pod, installed by its chart, and the stand-in of Doris
// in the Pods of clusters, as each version that may be drawn.
func runsOnNode(t *testing.T, c *cluster.Cluster) error {
	t.Helper()
	ctx := context.Background()
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	d := &demo.Demo{Root: root, Images: t.TempDir(), Out: logged{t}, Cluster: c}
	d.Begin()
	if err := demo.BuildImages(ctx, root, d.Images, d.Out); err != nil {
		return err
	}
	if err := demo.BuildHelm(ctx, root, d.Images, d.Out); err != nil {
		return err
	}
	for _, v := range versions[1:] { // the first is among the images of the demonstration
		images := t.TempDir()
		if err := demo.BuildStandIn(ctx, root, images, d.Out, "--fe-tag", "apache/doris:fe-"+v, "--be-tag", "apache/doris:be-"+v); err != nil {
			return err
		}
		if err := (&demo.Demo{Root: root, Images: images, Out: d.Out, Cluster: c}).LoadImages(ctx); err != nil {
			return err
		}
	}
	return d.Install(ctx)
}

// records are what the operator notes of a database while it rolls. Simulated nodes have
// none, and a plan does not ask it.
var records = []string{meta.AnnotationRolling, meta.AnnotationBalanceStopped, meta.AnnotationMetadataDump}

// written is what the operator wrote of an object. Where it talks to a database, what it
// notes of that by the way does not count, and so neither does when it wrote.
func written(o client.Object) (string, error) {
	wrote := story.Wrote(o)
	if wrote == "" || !onNode() {
		return wrote, nil
	}
	all, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	var content map[string]any
	if err := json.Unmarshal(all, &content); err != nil {
		return "", err
	}
	annotations := maps.Clone(o.GetAnnotations())
	for _, key := range records {
		delete(annotations, key)
	}
	delete(content, "metadata")
	delete(content, "status")
	text, err := json.Marshal([]any{content, o.GetLabels(), annotations})
	return string(text), err
}
