package doris

import (
	"flag"
	"os"
	"runtime"
	"testing"
	"time"
)

// exploreVariable lets the properties draw anew at each run. Without it they draw the
// same cases each time, so that a change is judged by what it does and not by luck;
// `make fuzz` sets it and goes on looking.
const exploreVariable = "FAIRLEAD_EXPLORE"

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(exploreVariable) == "" {
		if err := flag.Set("rapid.seed", "20261130"); err != nil {
			panic(err)
		}
	}
	// The runtime samples allocations for a profile that nobody reads here: a sixth of
	// the time of this package, which allocates all the while.
	if p := flag.Lookup("test.memprofile"); p == nil || p.Value.String() == "" {
		runtime.MemProfileRate = 0
	}
	os.Exit(m.Run())
}

// The race detector makes a planner six times slower that shares nothing with anybody:
// `make test-unit` tells a share of the long tales with it (-short), and all without.

// stride is how many points of a tale lie between two kills that are told.
func stride() int {
	if testing.Short() {
		return 7
	}
	return 1
}

// budget bounds a property by time, not by cases: a slow machine tries fewer.
func budget() time.Duration {
	if testing.Short() {
		return 4 * time.Second
	}
	return 20 * time.Second
}
