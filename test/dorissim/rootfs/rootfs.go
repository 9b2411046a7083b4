// Package rootfs holds the scripts and configuration files of the stand-in's images, laid out as below
// /opt/apache-doris. They are our own; the paths, arguments, environment and steps are those of the real images.
package rootfs

import "embed"

// Files is the content: entrypoints and prestop scripts at the top, one tree per component.
//
//go:embed *.sh doris-debug fe be
var Files embed.FS
