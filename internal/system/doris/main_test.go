package doris

import (
	"flag"
	"os"
	"testing"
)

// exploreVariable lets the properties draw anew at each run. Without it they draw the
// same cases each time, so that a change is judged by what it does and not by luck;
// `make fuzz` sets it and goes on looking.
const exploreVariable = "FAIRLEAD_EXPLORE"

func TestMain(m *testing.M) {
	if os.Getenv(exploreVariable) == "" {
		if err := flag.Set("rapid.seed", "20261130"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
