package stories

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/test/inpods"
)

// relay is a listener by which the operator, another process, reaches the processes in
// the Pods of a scene: the first line of a connection says which.
type relay struct {
	listener net.Listener
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// openProcesses has processes run in the Pods of a scene from now on.
func (sc *scene) openProcesses(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	sc.processes = inpods.New(filepath.Join(sc.dir, "doris"))
	sc.running.Store(sc.namespace, sc.processes)
	sc.relay = &relay{listener: listener, dial: sc.processes.Dial}
	go sc.relay.serve(context.WithoutCancel(ctx))
	return nil
}

// closeProcesses ends them, if there are any.
func (sc *scene) closeProcesses() {
	if sc.processes == nil {
		return
	}
	sc.running.Delete(sc.namespace)
	_ = sc.relay.listener.Close()
	_ = sc.processes.Close() // backends are killed
}

func (r *relay) serve(ctx context.Context) {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		go r.lead(ctx, c)
	}
}

// lead connects the two ends; where there is nobody, the connection just ends.
func (r *relay) lead(ctx context.Context, c net.Conn) {
	defer c.Close()
	from := bufio.NewReader(c)
	address, err := from.ReadString('\n')
	if err != nil {
		return
	}
	to, err := r.dial(ctx, "tcp", strings.TrimSuffix(address, "\n"))
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(c, to)
}

// dialRelay is how the operator reaches an address through a relay.
func dialRelay(ctx context.Context, relay, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", relay)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(c, address); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}
