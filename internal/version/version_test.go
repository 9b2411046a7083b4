package version

import "testing"

func TestString(t *testing.T) {
	if got := String(); got == "" {
		t.Error("a build without a version")
	}
	value = "v1.2.3"
	t.Cleanup(func() { value = "" })
	if got := String(); got != "v1.2.3" {
		t.Errorf("String() = %q, want what the linker said", got)
	}
}
