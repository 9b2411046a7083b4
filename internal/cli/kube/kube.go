// Package kube connects the verbs of the kubectl plugin to a cluster.
package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// Scheme holds the kinds that the verbs read.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(dorisv1.AddToScheme(s))
	return s
}

// Client connects as kubectl would, and tells the namespace in effect.
func Client(flags *genericclioptions.ConfigFlags) (client.Client, string, error) {
	cfg, err := flags.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("finding the cluster: %w", err)
	}
	cfg.UserAgent = "kubectl-fairlead"
	c, err := client.New(cfg, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, "", fmt.Errorf("connecting: %w", err)
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("finding the namespace: %w", err)
	}
	return c, namespace, nil
}

// Reader reads for one DorisCluster what the operator would.
func Reader(c client.Reader, dc *dorisv1.DorisCluster) observe.Reader {
	return observe.Direct{
		Client: c, Owners: doris.OwnerOf,
		Owner: types.NamespacedName{Namespace: dc.Namespace, Name: dc.Name},
	}
}
