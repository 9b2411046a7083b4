// Package story holds what all tests share that tell stories of the operator on
// a real control plane: what is installed, as whom the operator runs, when a
// cluster is settled, and the history of a namespace with the promises that it
// is held against.
package story
