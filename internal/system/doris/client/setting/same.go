package setting

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// family groups the type names of both systems by how a value is written.
type family int

const (
	text family = iota
	whole
	fraction
	truth
	list
)

// familyOf reads a type name: int, long, boolean, String[] and their like of a
// frontend; int32_t, double, bool, std::vector<…> of a backend. For a list the
// second result is the family of its elements.
func familyOf(name string) (family, family) {
	if element, found := strings.CutSuffix(name, "[]"); found {
		f, _ := familyOf(element)
		return list, f
	}
	if element, found := strings.CutPrefix(name, "std::vector<"); found {
		f, _ := familyOf(strings.TrimSuffix(element, ">"))
		return list, f
	}
	switch name {
	case "short", "int", "long", "int16_t", "int32_t", "int64_t":
		return whole, text
	case "double", "float":
		return fraction, text
	case "boolean", "bool":
		return truth, text
	}
	return text, text
}

// Same tells whether the value that a node reports for a setting of a type is
// the wanted one, whatever the spelling: numbers by their value, lists by their
// elements, everything else as trimmed text.
func Same(typeName, reported, wanted string) bool {
	f, element := familyOf(typeName)
	if f == list {
		return slices.EqualFunc(elements(reported), elements(wanted), func(a, b string) bool {
			return sameOne(element, a, b)
		})
	}
	return sameOne(f, strings.TrimSpace(reported), strings.TrimSpace(wanted))
}

func sameOne(f family, reported, wanted string) bool {
	if reported == wanted {
		return true
	}
	switch f {
	case whole:
		r, errR := strconv.ParseInt(reported, 10, 64)
		w, errW := strconv.ParseInt(wanted, 10, 64)
		return errR == nil && errW == nil && r == w
	case fraction:
		return sameFraction(reported, wanted)
	case truth:
		r, okR := truthOf(reported)
		w, okW := truthOf(wanted)
		return okR && okW && r == w
	case text, list:
	}
	return false
}

// printed is how many digits a backend prints of a fraction.
const printed = 6

// sameFraction compares numbers. A backend prints six significant digits, so a
// value that it was given with more of them comes back rounded.
func sameFraction(reported, wanted string) bool {
	r, errR := strconv.ParseFloat(reported, 64)
	w, errW := strconv.ParseFloat(wanted, 64)
	if errR != nil || errW != nil || math.IsNaN(r) || math.IsNaN(w) {
		return false
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(w, 'g', printed, 64), 64)
	return r == w || err == nil && r == rounded
}

// truthOf reads a boolean; a backend keeps it as 1 or 0.
func truthOf(s string) (value, known bool) {
	switch strings.ToLower(s) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	return false, false
}

// elements splits a list: "a,b" in a file, "[a, b]" by a frontend, "a, b" by a
// backend. Empty ones at the end count for nothing, as in Java.
func elements(s string) []string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// Fits tells whether a node can read a value as the type. A node whose file has
// one that does not fit refuses to start. An unknown type fits everything.
func Fits(typeName, value string) bool {
	value = strings.TrimSpace(value)
	var err error
	switch typeName {
	case "short", "int16_t":
		_, err = strconv.ParseInt(value, 10, 16)
	case "int", "int32_t":
		_, err = strconv.ParseInt(value, 10, 32)
	case "long", "int64_t":
		_, err = strconv.ParseInt(value, 10, 64)
	case "double", "float":
		_, err = strconv.ParseFloat(value, 64)
	case "boolean": // a frontend takes any case
		return strings.EqualFold(value, "true") || strings.EqualFold(value, "false")
	case "bool": // a backend does not
		return value == "true" || value == "false"
	}
	return err == nil
}
