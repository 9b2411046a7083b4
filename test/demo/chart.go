package demo

import (
	"context"
	"io"
	"path/filepath"
)

// SystemNamespace is where the operator lives.
const SystemNamespace = "fairlead-system"

// BuildHelm builds Helm, of the version that the tests of the chart have, from
// their module: it is no dependency of the operator's.
func BuildHelm(ctx context.Context, root, dir string, out io.Writer) error {
	binary, err := filepath.Abs(filepath.Join(dir, "helm"))
	if err != nil {
		return err
	}
	return goTool(ctx, filepath.Join(root, "test", "chart"), out, "build", "-o", binary, "helm.sh/helm/v4/cmd/helm")
}

// InstallChart installs the operator, whose image the node has, with the chart and
// these arguments.
func (d *Demo) InstallChart(ctx context.Context, args ...string) error {
	d.Sayf("installing the operator: helm install fairlead charts/fairlead -n %s --create-namespace", SystemNamespace)
	args = append([]string{"install", "fairlead", filepath.Join(d.Root, "charts", "fairlead"), "-n", SystemNamespace, "--create-namespace"}, args...)
	if _, err := d.Helm(ctx, args...); err != nil {
		return err
	}
	return d.awaitOperator(ctx)
}

// Helm runs Helm, which BuildHelm has built, and returns what it printed.
func (d *Demo) Helm(ctx context.Context, args ...string) (string, error) {
	home := filepath.Join(d.Images, "helm-home") // nothing of the user's own counts
	return d.run(ctx, filepath.Join(d.Images, "helm"), []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}, args)
}
