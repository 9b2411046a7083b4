// Package truth holds that what happens is what `kubectl fairlead plan` said: it draws
// edits of DorisClusters and their ConfigMaps, plans each, applies it, waits until
// the operator is at rest, and compares. Real control plane, simulated nodes (a test
// double), many namespaces side by side. A sequence that fails is made smaller.
package truth
