// Package config is the configuration of the operator itself: the options, the
// file that may hold them, the layers that decide each, and the watch that
// follows the file while the operator runs.
//
// There is one table of options. Flags, environment, file, documentation and
// the schema of the Helm chart all come from it.
package config
