package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/config"
	"github.com/fairlead-dev/fairlead/internal/dial"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/kernel"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// Doris is what the kernel asks of DorisClusters.
type Doris = kernel.System[*dorisv1.DorisCluster, doris.World]

// Around puts something around a part of the operator. Tests seed faults in
// this way, to prove that they would be noticed; nil leaves a part as it is.
type Around struct {
	Doris  func(Doris) Doris
	Writer func(kernel.Writer) kernel.Writer
}

// dependencies are what systems are given.
type dependencies struct {
	dial    dial.Func
	account doris.SecretReader
	workers int
	around  Around
	// tuned are the options of the configuration for a custom resource; nil where
	// there is no configuration.
	tuned func(namespace string, annotations map[string]string) config.Resource
}

func (d dependencies) doris(engine *diff.Engine) Doris {
	system := doris.New(engine).Reaching(doris.NewNodes(d.dial, d.account), time.Now).ReadingSecrets(d.account).Counting(counted("doriscluster"))
	if d.tuned != nil {
		system = system.TunedBy(func(namespace string, annotations map[string]string) doris.Tuning {
			return doris.Tuning(d.tuned(namespace, annotations))
		})
	}
	if d.around.Doris == nil {
		return system
	}
	return d.around.Doris(system)
}

type runFunc = func(context.Context, manager.Manager, []string) error

// registry is the explicit list of systems, in the order in which they start.
func registry(d dependencies) []struct {
	name string
	run  runFunc
} {
	engine := diff.New(scheme())
	return []struct {
		name string
		run  runFunc
	}{
		{"doriscluster", kernel.Registration[*dorisv1.DorisCluster, doris.World]{
			Name: "doriscluster", Manager: doris.FieldManager, Engine: engine, Workers: d.workers,
			New:     func() *dorisv1.DorisCluster { return &dorisv1.DorisCluster{} },
			System:  d.doris(engine),
			Watches: doris.Watches(), RivalLease: doris.UpstreamLease,
			Around: d.around.Writer,
		}.Run},
	}
}

// SystemNames lists the systems that there are.
func SystemNames() []string {
	var names []string
	for _, s := range registry(dependencies{}) {
		names = append(names, s.name)
	}
	return names
}

// systems picks the named systems.
func systems(names []string, d dependencies) ([]runFunc, error) {
	all := registry(d)
	var runs []runFunc
	for _, n := range names {
		found := false
		for _, s := range all {
			if s.name == n {
				runs, found = append(runs, s.run), true
			}
		}
		if !found {
			return nil, fmt.Errorf("--systems names %q; known are %s", n, strings.Join(SystemNames(), ", "))
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("--systems is empty; known are %s", strings.Join(SystemNames(), ", "))
	}
	return runs, nil
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(dorisv1.AddToScheme(s))
	return s
}
