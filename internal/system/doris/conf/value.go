package conf

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// ValueError tells that the value of a key cannot be used.
type ValueError struct {
	// Key as it was asked for.
	Key string
	// Value as it stands in the file.
	Value string
	// Want says what would be right.
	Want string
}

// Error implements error.
func (e *ValueError) Error() string {
	return fmt.Sprintf("%s = %q: want %s", e.Key, e.Value, e.Want)
}

// Lookup finds the value of an environment variable.
type Lookup func(name string) (string, bool)

// Expand returns the value of a key with every ${NAME} replaced by the value of
// that environment variable. A variable that does not exist is an error, as it
// is for Doris, which does not start then.
func (f *File) Expand(key string, env Lookup) (value string, found bool, err error) {
	value, found = f.Get(key)
	if !found {
		return "", false, nil
	}
	expanded, err := ExpandText(value, env)
	if err != nil {
		return "", true, &ValueError{Key: key, Value: value, Want: err.Error()}
	}
	return expanded, true, nil
}

// ExpandText replaces every ${NAME} in a text by the value of that environment
// variable. What it inserts is not looked at again.
func ExpandText(text string, env Lookup) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("${" + rest)
			return b.String(), nil
		}
		value, known := env(name)
		if !known {
			return "", fmt.Errorf("a value for the environment variable %q", name)
		}
		b.WriteString(value)
		text = after
	}
}

// The typed reads below return the default for a key that is not there or has no
// value: Doris keeps its own default for both.

// Port reads a key as a port number.
func (f *File) Port(key string, missing int32) (int32, error) {
	value, _ := f.Get(key)
	if value == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 1 || n > 65535 {
		return missing, &ValueError{Key: key, Value: value, Want: "a port between 1 and 65535"}
	}
	return int32(n), nil
}

// OptionalPort reads a key as the port of a service that is off when the key is
// not there, empty or -1. The port is 0 then.
func (f *File) OptionalPort(key string) (int32, error) {
	value, _ := f.Get(key)
	if value == "" || value == "-1" {
		return 0, nil
	}
	port, err := f.Port(key, 0)
	if err != nil {
		return 0, &ValueError{Key: key, Value: value, Want: "a port between 1 and 65535, or -1 for none"}
	}
	return port, nil
}

// Int reads a key as a whole number.
func (f *File) Int(key string, missing int64) (int64, error) {
	value, _ := f.Get(key)
	if value == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return missing, &ValueError{Key: key, Value: value, Want: "a whole number"}
	}
	return n, nil
}

// Bool reads a key as true or false, in any case.
func (f *File) Bool(key string, missing bool) (bool, error) {
	value, _ := f.Get(key)
	if value == "" {
		return missing, nil
	}
	switch strings.ToLower(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return missing, &ValueError{Key: key, Value: value, Want: "true or false"}
}

// Unquote removes one pair of double quotes around a value, which the start
// scripts do for the variables that they export (JAVA_OPTS and other names in
// capital letters).
func Unquote(value string) string {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		return value[1 : len(value)-1]
	}
	return value
}

// StorageRoot is one directory of a backend's storage_root_path.
type StorageRoot struct {
	// Path of the directory, without a trailing slash.
	Path string
	// Medium is SSD or HDD in capital letters, or empty.
	Medium string
	// Capacity as it was written, or empty.
	Capacity string
}

// StorageRoots reads the value of storage_root_path:
//
//	path[.SSD|.HDD][,capacity][,medium:SSD][,capacity:50];path…
//
// Only a trailing .ssd or .hdd, in any case, is a medium: a path may hold other
// dots. A directory that is named twice is returned once.
func StorageRoots(value string) ([]StorageRoot, error) {
	var roots []StorageRoot
	seen := map[string]bool{}
	for entry := range strings.SplitSeq(value, ";") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		root, err := storageRoot(entry)
		if err != nil {
			return nil, err
		}
		if !seen[root.Path] {
			seen[root.Path] = true
			roots = append(roots, root)
		}
	}
	return roots, nil
}

// storageRoot reads one entry of storage_root_path.
func storageRoot(entry string) (StorageRoot, error) {
	parts := strings.Split(entry, ",")
	var root StorageRoot
	dir := strings.TrimSpace(parts[0])
	if ext := strings.ToUpper(path.Ext(dir)); ext == ".SSD" || ext == ".HDD" {
		root.Medium = ext[1:]
		dir = dir[:len(dir)-len(ext)]
	}
	if !path.IsAbs(dir) {
		return root, fmt.Errorf("storage path %q: want an absolute path", entry)
	}
	root.Path = path.Clean(dir)
	for _, part := range parts[1:] {
		name, val, named := strings.Cut(part, ":")
		name, val = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(val)
		switch {
		case !named:
			root.Capacity = strings.TrimSpace(part)
		case name == "capacity":
			root.Capacity = val
		case name == "medium":
			root.Medium = strings.ToUpper(val)
		}
	}
	return root, nil
}
