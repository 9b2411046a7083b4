package setting

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSame(t *testing.T) {
	for _, tc := range []struct {
		name, typeName, reported, wanted string
		want                             bool
	}{
		{"equal numbers", "int", "1000", "1000", true},
		{"number with a sign and a leading zero", "int32_t", "1000", "+01000", true},
		{"number with blanks around it", "int64_t", "1000", " 1000\t", true},
		{"other number", "int", "1000", "1001", false},
		{"number against a text", "int", "1000", "1k", false},
		{"boolean in capitals", "boolean", "true", "TRUE", true},
		{"boolean as a backend keeps it", "bool", "1", "true", true},
		{"other boolean", "boolean", "true", "false", false},
		{"boolean against a text", "boolean", "true", "yes", false},
		{"fraction with a last zero", "double", "0.1", "0.10", true},
		{"fraction in another form", "double", "1.0E10", "10000000000", true},
		{"fraction rounded by a backend", "double", "0.123457", "0.123456789", true},
		{"large fraction rounded by a backend", "double", "1.23457e+06", "1234567", true},
		{"fraction that rounding does not explain", "double", "0.123458", "0.123456789", false},
		{"no number is not itself as a number", "double", "NaN", "nan", false},
		{"equal texts", "String", "/a/b", "/a/b", true},
		{"texts differ in case", "std::string", "INFO", "info", false},
		{"a size is a text", "String", "80%", "80.0%", false},
		{"numbers of unknown type are texts", "", "1", "01", false},
		{"list of a frontend", "String[]", "[a, b]", "a,b", true},
		{"list of a backend", "std::vector<std::string>", "a, b", "a,b", true},
		{"list of numbers", "int[]", "[1, 2]", "1, 02", true},
		{"list in another order", "String[]", "[b, a]", "a,b", false},
		{"empty list", "String[]", "[]", "", true},
		{"shorter list", "String[]", "[a]", "a,b", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Same(tc.typeName, tc.reported, tc.wanted); got != tc.want {
				t.Errorf("Same(%q, %q, %q) = %t", tc.typeName, tc.reported, tc.wanted, got)
			}
		})
	}
}

func TestFits(t *testing.T) {
	for _, tc := range []struct {
		name, typeName, value string
		want                  bool
	}{
		{"number", "int", "5", true},
		{"number too large for its type", "int32_t", "2147483648", false},
		{"the same for the larger type", "int64_t", "2147483648", true},
		{"short number too large", "short", "40000", false},
		{"no number", "long", "5s", false},
		{"empty number", "int", "", false},
		{"fraction", "double", "0.5", true},
		{"no fraction", "double", "half", false},
		{"boolean of a frontend in capitals", "boolean", "TRUE", true},
		{"boolean of a backend in capitals", "bool", "TRUE", false},
		{"boolean of a backend", "bool", "false", true},
		{"text", "String", "", true},
		{"unknown type", "Duration", "x", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Fits(tc.typeName, tc.value); got != tc.want {
				t.Errorf("Fits(%q, %q) = %t", tc.typeName, tc.value, got)
			}
		})
	}
}

var typeNames = []string{
	"short", "int", "long", "double", "boolean", "String", "String[]", "int[]", "bool", "int16_t", "int32_t", "int64_t", "std::string",
	"std::vector<std::string>", "",
}

// A node that prints what it was given prints the same setting.
func TestPropertyWhatIsPrintedIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.Int64().Draw(t, "whole")
		if s := strconv.FormatInt(i, 10); !Same("int64_t", s, "0"+strings.TrimPrefix(s, "-")) && i >= 0 {
			t.Fatalf("%d is not itself", i)
		}
		f := rapid.Float64().Draw(t, "fraction")
		given := strconv.FormatFloat(f, 'f', -1, 64)
		for _, printed := range []string{strconv.FormatFloat(f, 'g', 6, 64), strconv.FormatFloat(f, 'E', -1, 64), given} {
			if !Same("double", printed, given) {
				t.Fatalf("%s printed as %s is another", given, printed)
			}
		}
		parts := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9/.]{1,8}`), 0, 5).Draw(t, "parts")
		if !Same("String[]", "["+strings.Join(parts, ", ")+"]", strings.Join(parts, ",")) {
			t.Fatalf("list %q is another", parts)
		}
	})
}

func FuzzSame(f *testing.F) {
	f.Add("double", "0.1", "0.10")
	f.Add("String[]", "[a, b]", "a,b")
	f.Add("std::vector<int>", "1, 2", "1,2")
	f.Fuzz(func(t *testing.T, typeName, a, b string) {
		if !Same(typeName, a, a) {
			family, element := familyOf(typeName)
			if family != list || element != fraction {
				t.Errorf("%q is not itself as %q", a, typeName)
			}
		}
		if Same(typeName, a, b) && typeName == "String" && strings.TrimSpace(a) != strings.TrimSpace(b) {
			t.Errorf("texts %q and %q are the same", a, b)
		}
		Fits(typeName, a)
	})
}
