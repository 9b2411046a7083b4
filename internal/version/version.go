// Package version tells which build of Fairlead this is.
package version

import "runtime/debug"

// value is set by the linker: -X github.com/fairlead-dev/fairlead/internal/version.value=v1.2.3
var value string

// String returns the version of this build: what the linker was told, else
// what the Go toolchain recorded, else "devel".
func String() string {
	if value != "" {
		return value
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
