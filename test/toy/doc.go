// Package toy is a data system for tests of the kernel: a test double of a
// real one, with one custom resource of its own, and faults on request.
//
// A Toy has a ConfigMap, a Service, two StatefulSets of which the second waits
// for the first, and any number of extra ConfigMaps that are pruned when they
// are no longer named. Its Pods are replaced one at a time.
package toy
