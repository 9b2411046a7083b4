package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check says what is wrong with the value behind field, an error that names the
// value unless it may hold a password.
func (o Option) check(field any) error {
	switch p := field.(type) {
	case *string:
		return o.checkText(*p)
	case *int:
		if *p < o.Min {
			return fmt.Errorf("is %d; write %d or more", *p, o.Min)
		}
	case *[]string:
		return o.checkList(*p)
	case *time.Duration:
		if *p < o.Shortest || *p > o.Longest {
			return fmt.Errorf("is %s; write %s to %s", Short(*p), Short(o.Shortest), Short(o.Longest))
		}
	}
	return nil
}

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

func (o Option) checkList(items []string) error {
	if len(items) == 0 && o.NonEmpty {
		return fmt.Errorf("is empty; write some of %s", strings.Join(o.Values, ", "))
	}
	for i, item := range items {
		if err := o.checkText(item); err != nil {
			return err
		}
		if slices.Contains(items[:i], item) {
			return fmt.Errorf("names %q twice", item)
		}
	}
	return nil
}

func (o Option) checkText(text string) error {
	_, list := o.field(new(Settings)).(*[]string)
	switch {
	case len(o.Values) > 0 && !slices.Contains(o.Values, text):
		return fmt.Errorf("%s; write %s", o.quote(text, list), oneOf(o.Values))
	case text == "" && !list:
		if o.NonEmpty {
			return fmt.Errorf("is empty; write %s", o.Wanted)
		}
	case o.Item != "" && !regexp.MustCompile(`^(`+o.Item+`)$`).MatchString(text):
		return fmt.Errorf("%s; write %s", o.quote(text, list), o.Wanted)
	}
	return nil
}

func (o Option) quote(text string, list bool) string {
	switch {
	case o.Secret:
		return "is not what it should be"
	case list:
		return fmt.Sprintf("names %q", text)
	}
	return fmt.Sprintf("is %q", text)
}

// holdsPassword reports whether a URL has a user part.
func holdsPassword(text string) bool { return strings.Contains(text, "@") }

func oneOf(values []string) string {
	if len(values) < 2 {
		return strings.Join(values, "")
	}
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// setText sets field from what stands on a command line or in the environment.
func setText(field any, text string) error {
	switch p := field.(type) {
	case *string:
		*p = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("is %q; write true or false", text)
		}
		*p = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("is %q; write a whole number", text)
		}
		*p = n
	case *[]string:
		*p = nil
		if text != "" {
			*p = strings.Split(text, ",")
		}
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("is %q; write a duration such as 30s or 5m", text)
		}
		*p = d
	default:
		return errors.New("has a type that no text can be read into")
	}
	return nil
}

// copyField copies one option's value.
func copyField(to, from any) {
	switch p := to.(type) {
	case *string:
		*p = *from.(*string) //nolint:forcetypeassert // both are the same option's field
	case *bool:
		*p = *from.(*bool) //nolint:forcetypeassert // likewise
	case *int:
		*p = *from.(*int) //nolint:forcetypeassert // likewise
	case *[]string:
		*p = slices.Clone(*from.(*[]string)) //nolint:forcetypeassert // likewise
	case *time.Duration:
		*p = *from.(*time.Duration) //nolint:forcetypeassert // likewise
	}
}

// sameField reports whether an option has the same value in both.
func (o Option) same(a, b Settings) bool {
	switch p := o.field(&a).(type) {
	case *string:
		return *p == *o.field(&b).(*string) //nolint:forcetypeassert // both are the same option's field
	case *bool:
		return *p == *o.field(&b).(*bool) //nolint:forcetypeassert // likewise
	case *int:
		return *p == *o.field(&b).(*int) //nolint:forcetypeassert // likewise
	case *[]string:
		return slices.Equal(*p, *o.field(&b).(*[]string)) //nolint:forcetypeassert // likewise
	case *time.Duration:
		return *p == *o.field(&b).(*time.Duration) //nolint:forcetypeassert // likewise
	}
	return false
}
