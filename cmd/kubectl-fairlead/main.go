// Command kubectl-fairlead is the kubectl plugin: what an edit would do, how
// resources are, and what a person lets the operator do.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/internal/cli"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cmd := cli.Command(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	err := cmd.ExecuteContext(ctx)
	stop()
	code, say := exit.Code(err)
	if say {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	os.Exit(code)
}
