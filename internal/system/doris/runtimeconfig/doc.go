// Package runtimeconfig keeps the settings that are changed in a running node of
// Doris: whether a cluster does so, on which volume, and what a Pod needs for it. It
// knows no kind of resource: DorisCluster and the kinds that come after it render
// their Pods and hand them over. It is pure.
//
// A node writes such settings into a file of its own (fe_custom.conf, be_custom.conf,
// ms_custom.conf) in the directory that its base file names. By default that is a
// directory of the image, which goes with the container. Here it becomes one of a
// volume that the Pod has anyway, and an init container prepares a copy of the base
// file that says so.
package runtimeconfig
