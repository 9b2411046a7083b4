package migrate

import (
	"context"
	_ "embed" // the script that copies
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// Shell runs a program in a container of a Pod, and returns what it printed. One that fails
// is a *kube.ExitError.
type Shell interface {
	Run(ctx context.Context, pod, container string, command []string, in []byte) ([]byte, error)
}

//go:embed copy.sh
var copying string

// reading prints a file; it ends with notThere where there is none.
const reading = `[[ -e $1 ]] || { [[ -L $1 ]] && exit 45; exit 44; }
[[ -f $1 ]] || exit 45
cat -- "$1"`

const (
	notThere = 44
	noFile   = 45
)

// perCall bounds one program in one Pod.
const perCall = time.Minute

// read returns a file of a member; nil where there is none.
func (r *run) read(ctx context.Context, m member, file string) ([]byte, error) {
	out, err := r.call(ctx, m, []string{"bash", "-c", reading, "read", file}, nil)
	exit, failed := errors.AsType[*kube.ExitError](err)
	switch {
	case failed && exit.Code == notThere:
		return nil, nil
	case failed && exit.Code == noFile:
		return nil, fmt.Errorf("in Pod %s: %s is no file: nothing was changed; mend that by hand first", m.pod.Name, file)
	case err != nil:
		return nil, fmt.Errorf("reading %s of Pod %s: %w", file, m.pod.Name, err)
	case out == nil:
		out = []byte{}
	}
	return out, nil
}

// onVolume is what lies on the volume of a member.
type onVolume struct {
	// marked tells that a copy of this migration is there and whole; begun that one was
	// begun; there that there is a file with settings, whoever made it.
	marked, begun, there bool
}

func (r *run) look(ctx context.Context, m member, id string) (onVolume, error) {
	out, err := r.copy(ctx, m, "look", id, nil)
	if err != nil {
		return onVolume{}, err
	}
	words := strings.Fields(string(out))
	has := func(word string) bool { return slices.Contains(words, word) }
	if !has("ok") {
		return onVolume{}, fmt.Errorf("in Pod %s does not say what is on its volume", m.pod.Name)
	}
	return onVolume{marked: has("marked"), begun: has("begun"), there: has("there")}, nil
}

func (r *run) copy(ctx context.Context, m member, do, id string, in []byte) ([]byte, error) {
	out, err := r.call(ctx, m, []string{"bash", "-c", copying, "copy", do, m.component.Record.MountPath, m.pod.Name, m.file(), id}, in)
	if exit, failed := errors.AsType[*kube.ExitError](err); failed {
		return nil, fmt.Errorf("in Pod %s: %s", m.pod.Name, strings.TrimSpace(exit.Said))
	}
	if err != nil {
		return nil, fmt.Errorf("in Pod %s: %w", m.pod.Name, err)
	}
	return out, nil
}

// call runs a program in the main container of a member.
func (r *run) call(ctx context.Context, m member, command []string, in []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, perCall)
	defer cancel()
	return r.shell.Run(ctx, m.pod.Name, string(m.component.Kind), command, in)
}

// target is where the copy of a member is, as its main container sees its volume now.
func (m member) target() string {
	return path.Join(m.component.Record.MountPath, runtimeconfig.OnVolume, m.pod.Name, m.file())
}

// file is the name of the file that a member keeps its settings in.
func (m member) file() string { return runtimeconfig.Kind(m.component.Kind).CustomFile() }
