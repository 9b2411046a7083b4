package meta_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/api/meta"
)

func TestPaused(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "True": true, "1": true, "yes": true, "": true, "false": false, "0": false} {
		if got := meta.Paused(map[string]string{meta.AnnotationPaused: value}); got != want {
			t.Errorf("paused=%q: %t, want %t", value, got, want)
		}
	}
	if meta.Paused(nil) {
		t.Error("paused without an annotation")
	}
}
