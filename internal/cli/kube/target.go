package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// words are the names of the kind, as kubectl takes them.
func words() []string {
	group := "." + dorisv1.GroupVersionKind().Group
	return []string{"dcr", "doriscluster", "dorisclusters", "doriscluster" + group, "dorisclusters" + group}
}

// ShortKind is the shortest name of the kind.
const ShortKind = "dcr"

// IsKind tells whether a word names a kind that the plugin knows.
func IsKind(word string) bool { return slices.Contains(words(), strings.ToLower(word)) }

func unknownKind(word string) error {
	return fmt.Errorf("%q is no kind that Fairlead has: write doriscluster or dcr, and then the name", word)
}

// One reads the resource that the first arguments name, KIND NAME or KIND/NAME or
// just NAME alone, and returns the arguments after it.
func One(args []string) (name string, rest []string, err error) {
	switch {
	case len(args) == 0:
		return "", nil, errors.New("name the resource: KIND NAME, for example dcr doris")
	case strings.Contains(args[0], "/"):
		name, err = slashed(args[0])
		return name, args[1:], err
	case IsKind(args[0]) && len(args) == 1:
		return "", nil, fmt.Errorf("give the name too: %s NAME", args[0])
	case IsKind(args[0]):
		return args[1], args[2:], named(args[1])
	case len(args) == 1:
		return args[0], nil, named(args[0])
	}
	return "", nil, unknownKind(args[0])
}

// Names reads all arguments as names of resources: KIND NAME..., KIND/NAME... or
// NAME. A kind alone, or nothing, means all that there are.
func Names(args []string) (names []string, all bool, err error) {
	switch {
	case len(args) == 0 || len(args) == 1 && IsKind(args[0]):
		return nil, true, nil
	case strings.Contains(args[0], "/"):
		for _, a := range args {
			name, err := slashed(a)
			if err != nil {
				return nil, false, err
			}
			names = append(names, name)
		}
	case IsKind(args[0]):
		names = args[1:]
	case len(args) == 1:
		names = args
	default:
		return nil, false, unknownKind(args[0])
	}
	for _, n := range names {
		if err := named(n); err != nil {
			return nil, false, err
		}
	}
	return names, false, nil
}

func slashed(word string) (string, error) {
	kind, name, found := strings.Cut(word, "/")
	if !found {
		return "", fmt.Errorf("%q is not of the form KIND/NAME", word)
	}
	if !IsKind(kind) {
		return "", unknownKind(kind)
	}
	return name, named(name)
}

func named(name string) error {
	if name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%q is no name of a resource", name)
	}
	return nil
}
