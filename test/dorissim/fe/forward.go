package fe

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/sqlparse"
	"github.com/fairlead-dev/fairlead/test/dorissim/wire"
)

// forwarded is a statement that another frontend passes on to the master.
type forwarded struct{ User, Database, SQL string }

// outcome is the master's answer, with an error in a form that survives the way back.
type outcome struct {
	Answer answer
	Code   uint16
	Error  string
}

const pathForward = "/forward"

func (n *Node) rpcHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathForward, wire.Handle(n.onForward))
	return mux
}

func (n *Node) onForward(ctx context.Context, in forwarded) (outcome, error) {
	statement, err := sqlparse.Parse(in.SQL)
	if err != nil {
		return outcome{}, err
	}
	if !n.quorum.Status().IsMaster {
		return outcome{}, errors.New("this frontend is not the master any more")
	}
	s := &session{node: n, ctx: ctx, user: in.User, database: in.Database, cancel: func() {}}
	var a *answer
	if set, ok := statement.(sqlparse.SetConfig); ok {
		a, err = s.setConfigHere(set)
	} else {
		a, err = s.change(statement)
	}
	var coded *mysql.MyError
	if err != nil && errors.As(sqlError(err), &coded) {
		return outcome{Code: coded.Code, Error: coded.Message}, nil
	}
	if a == nil {
		a = &answer{}
	}
	return outcome{Answer: *a}, nil
}

func (n *Node) forward(ctx context.Context, master string, in forwarded) (*answer, error) {
	host, _, err := meta.SplitAddr(master)
	if err != nil {
		return nil, err
	}
	port := n.frontendStatus()[master].RPCPort
	if port == 0 {
		return nil, fmt.Errorf("the master %s has not told its rpc_port yet", master)
	}
	var out outcome
	rpc := wire.Service{Client: n.client, Addr: meta.Addr(host, port), Path: pathForward}
	if err := rpc.Call(ctx, in, &out); err != nil {
		return nil, fmt.Errorf("pass the statement on to the master: %w", err)
	}
	if out.Error != "" {
		return nil, mysql.NewError(out.Code, out.Error)
	}
	return &out.Answer, nil
}
