package kube

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// completionPatience is how long a shell waits for names.
const completionPatience = 2 * time.Second

// CompleteNames completes kinds, and the names of the resources of the namespace.
func CompleteNames(flags *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		prefix := ""
		kind, _, slashed := strings.Cut(word, "/")
		switch {
		case slashed && IsKind(kind):
			prefix = kind + "/"
		case len(args) == 0:
			return startingWith(words()[:2], word), cobra.ShellCompDirectiveNoFileComp
		case !IsKind(args[0]):
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, name := range clusterNames(cmd.Context(), flags) {
			out = append(out, prefix+name)
		}
		return startingWith(out, word), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteOne is CompleteNames for verbs that take one resource; after it, more
// completes what follows.
func CompleteOne(flags *genericclioptions.ConfigFlags, more func(ctx context.Context, name string) []string) cobra.CompletionFunc {
	names := CompleteNames(flags)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || len(args) == 1 && IsKind(args[0]) {
			return names(cmd, args, word)
		}
		name, _, err := One(args)
		if err != nil || more == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return startingWith(more(cmd.Context(), name), word), cobra.ShellCompDirectiveNoFileComp
	}
}

func startingWith(all []string, word string) []string {
	var out []string
	for _, a := range all {
		// A description may follow a tab.
		if strings.HasPrefix(a, word) {
			out = append(out, a)
		}
	}
	return out
}

// clusterNames are the names of the resources of the namespace; none where they
// cannot be had soon.
func clusterNames(ctx context.Context, flags *genericclioptions.ConfigFlags) []string {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(dorisv1.GroupVersionKind().GroupVersion().WithKind(dorisv1.Kind + "List"))
	return listed(ctx, flags, list, func(s *Session) string { return s.Namespace })
}

// Namespaces are the names of all namespaces, for completion.
func Namespaces(ctx context.Context, flags *genericclioptions.ConfigFlags) []string {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return listed(ctx, flags, list, func(*Session) string { return "" })
}

func listed(ctx context.Context, flags *genericclioptions.ConfigFlags, list *metav1.PartialObjectMetadataList, namespace func(*Session) string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	s, err := Connect(flags)
	if err != nil || s.List(ctx, list, client.InNamespace(namespace(s))) != nil {
		return nil
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
