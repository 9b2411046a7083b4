package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Value is the value of an option in some Settings. Its methods are all that
// depends on the type of an option; what is known of the option is in the table.
type Value interface {
	// Set reads what stands on a command line, in the environment or in an annotation.
	Set(text string) error
	// String is the value as people write it, and as Set reads it.
	String() string
	// Type is the name of the type, as flags have it.
	Type() string
	// fits says why a value of a file cannot be this one.
	fits(n *yaml.Node) error
	// check says what is wrong with the value: an error that names it unless it may
	// hold a password.
	check(o Option) error
}

// The types of values.
type (
	text   string
	toggle bool
	number int
	length time.Duration
	// List is a list of texts.
	List []string
)

func (*text) Type() string   { return "string" }
func (*toggle) Type() string { return "bool" }
func (*number) Type() string { return "int" }
func (*length) Type() string { return "duration" }

// Type implements Value.
func (*List) Type() string { return "stringSlice" }

func (v *text) String() string   { return string(*v) }
func (v *toggle) String() string { return strconv.FormatBool(bool(*v)) }
func (v *number) String() string { return strconv.Itoa(int(*v)) }
func (v *length) String() string { return Short(time.Duration(*v)) }

// String implements Value.
func (v *List) String() string { return strings.Join(*v, ",") }

// Short writes a duration as people do: 1m and not 1m0s.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (v *text) Set(s string) error {
	*v = text(s)
	return nil
}

func (v *toggle) Set(s string) error {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("is %q; write true or false", s)
	}
	*v = toggle(b)
	return nil
}

func (v *number) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("is %q; write a whole number", s)
	}
	*v = number(n)
	return nil
}

func (v *length) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("is %q; write a duration such as 30s or 5m", s)
	}
	*v = length(d)
	return nil
}

// Set implements Value.
func (v *List) Set(s string) error {
	*v = nil
	if s != "" {
		*v = strings.Split(s, ",")
	}
	return nil
}

// setNode sets a value from one of a file, which must have its type.
func setNode(v Value, n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Tag == "!!null" {
		return errors.New("has no value; leave the line out for the default")
	}
	if list, ok := v.(*List); ok {
		return list.setNodes(n)
	}
	if n.Kind != yaml.ScalarNode {
		return errors.New("is no single value")
	}
	if err := v.fits(n); err != nil {
		return err
	}
	return v.Set(n.Value)
}

func (v *List) setNodes(n *yaml.Node) error {
	if err := v.fits(n); err != nil {
		return err
	}
	*v = nil
	for _, item := range n.Content {
		*v = append(*v, item.Value)
	}
	return nil
}

func (*text) fits(n *yaml.Node) error {
	return tagged(n, "!!str", fmt.Sprintf("is %s, which is no text; put it in quotes", n.Value))
}

func (*toggle) fits(n *yaml.Node) error {
	return tagged(n, "!!bool", fmt.Sprintf("is %q; write true or false", n.Value))
}

func (*number) fits(n *yaml.Node) error {
	return tagged(n, "!!int", fmt.Sprintf("is %q; write a whole number", n.Value))
}

func (*length) fits(n *yaml.Node) error {
	return tagged(n, "!!str", fmt.Sprintf("is %s, which has no unit; write 30s or 5m", n.Value))
}

func tagged(n *yaml.Node, tag, otherwise string) error {
	if n.Tag != tag {
		return errors.New(otherwise)
	}
	return nil
}

func (*List) fits(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return errors.New("is no list; write [a, b]")
	}
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || item.Tag != "!!str" {
			return fmt.Errorf("has an item in line %d that is no text", item.Line)
		}
	}
	return nil
}

func (*toggle) check(Option) error { return nil }

func (v *number) check(o Option) error {
	if int(*v) < o.Min {
		return fmt.Errorf("is %d; write %d or more", *v, o.Min)
	}
	return nil
}

func (v *length) check(o Option) error {
	if d := time.Duration(*v); d < o.Shortest || d > o.Longest {
		return fmt.Errorf("is %s; write %s to %s", Short(d), Short(o.Shortest), Short(o.Longest))
	}
	return nil
}

func (v *text) check(o Option) error {
	s := string(*v)
	if s == "" && len(o.Values) == 0 {
		if o.NonEmpty {
			return fmt.Errorf("is empty; write %s", o.Wanted)
		}
		return nil
	}
	return o.checkText("is", s)
}

func (v *List) check(o Option) error {
	if len(*v) == 0 && o.NonEmpty {
		return fmt.Errorf("is empty; write some of %s", strings.Join(o.Values, ", "))
	}
	for i, item := range *v {
		if err := o.checkText("names", item); err != nil {
			return err
		}
		if slices.Contains((*v)[:i], item) {
			return fmt.Errorf("names %q twice", item)
		}
	}
	return nil
}

// checkText holds a text against the choice or the form that the table has.
func (o Option) checkText(verb, s string) error {
	wanted := o.Wanted
	switch {
	case len(o.Values) > 0:
		if slices.Contains(o.Values, s) {
			return nil
		}
		wanted = oneOf(o.Values)
	case o.Item == "" || regexp.MustCompile(`^(`+o.Item+`)$`).MatchString(s):
		return nil
	}
	if o.Secret {
		return fmt.Errorf("is not what it should be; write %s", wanted)
	}
	return fmt.Errorf("%s %q; write %s", verb, s, wanted)
}

// holdsPassword reports whether a URL has a user part.
func holdsPassword(s string) bool { return strings.Contains(s, "@") }

func oneOf(values []string) string {
	if len(values) < 2 {
		return strings.Join(values, "")
	}
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
