package simnode

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Delay draws how long something takes. A nil Delay takes no time.
type Delay func(r *rand.Rand) time.Duration

// Fixed always takes d.
func Fixed(d time.Duration) Delay {
	return func(*rand.Rand) time.Duration { return d }
}

// Uniform takes between low and high, each moment being equally likely.
func Uniform(low, high time.Duration) Delay {
	return func(r *rand.Rand) time.Duration {
		if high <= low {
			return low
		}
		return low + time.Duration(r.Int64N(int64(high-low)+1))
	}
}

// Exponential takes mean on average and most times less; a long tail is cut
// at ten times the mean, so that no test waits for ever.
func Exponential(mean time.Duration) Delay {
	return func(r *rand.Rand) time.Duration {
		d := time.Duration(r.ExpFloat64() * float64(mean))
		return min(d, 10*mean)
	}
}

// maxDelay bounds what ParseDelay accepts: longer is a typing error, and ten
// times as much must not overflow.
const maxDelay = 24 * time.Hour

// ParseDelay reads "1s" (fixed), "500ms..3s" (uniform) or "~2s" (exponential
// with that mean).
func ParseDelay(text string) (Delay, error) {
	text = strings.TrimSpace(text)
	if low, high, found := strings.Cut(text, ".."); found {
		l, err := parseDuration(low)
		if err != nil {
			return nil, err
		}
		h, err := parseDuration(high)
		if err != nil {
			return nil, err
		}
		if h < l {
			return nil, fmt.Errorf("delay %q ends before it starts", text)
		}
		return Uniform(l, h), nil
	}
	mean, exponential := strings.CutPrefix(text, "~")
	d, err := parseDuration(mean)
	if err != nil {
		return nil, err
	}
	if exponential {
		return Exponential(d), nil
	}
	return Fixed(d), nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("delay %q: %w", text, err)
	}
	if d < 0 || d > maxDelay {
		return 0, fmt.Errorf("delay %q is outside of 0s to %s", text, maxDelay)
	}
	return d, nil
}

func (d Delay) draw(r *rand.Rand) time.Duration {
	if d == nil {
		return 0
	}
	return max(0, d(r))
}
