// Package build holds the pieces of Kubernetes objects that the builders of
// several data systems share. Everything in it is pure: same input, same bytes.
package build
