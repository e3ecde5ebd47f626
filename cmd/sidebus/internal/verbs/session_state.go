package verbs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type sessionStateCommand struct {
	Get   stateGetCommand   `cmd:"" help:"Read the state."`
	Set   stateSetCommand   `cmd:"" help:"Replace the state."`
	Clear stateClearCommand `cmd:"" help:"Remove the state."`
}

// heldName names a session that is taken for as long as the verb works.
type heldName struct {
	sessionName

	Wait time.Duration `name:"wait" short:"w" default:"0s" placeholder:"TIME" help:"How long to wait while another client holds the session, 0s to 1m."`

	clientSettings
}

// run lets work act on the session. prepare, nil for nothing, comes before the session is taken.
func (h *heldName) run(ctx context.Context, to terminal.Streams, prepare func(context.Context, *operator) error,
	work func(context.Context, *operator, *heldSession) error,
) error {
	if h.Wait < 0 || h.Wait > mostForNamed {
		return cli.Misuse("--wait is %s, must be 0s to %s", duration.Text(h.Wait), duration.Text(mostForNamed))
	}
	return h.operate(ctx, to, func(ctx context.Context, o *operator) error {
		if prepare != nil {
			if err := prepare(ctx, o); err != nil {
				return err
			}
		}
		return o.holding(ctx, h.resource(), h.ID, h.Wait, func(held *heldSession) error { return work(ctx, o, held) })
	})
}

type stateGetCommand struct {
	heldName

	Raw bool `name:"raw" help:"Write only the bytes of the state."`
}

// Run prints the state of a session. A missing state is not a failure.
func (s *stateGetCommand) Run(ctx context.Context, to terminal.Streams) error {
	if s.Raw && s.Output == "json" {
		return cli.Misuse("--raw and --output=json exclude each other")
	}
	return s.run(ctx, to, nil, func(_ context.Context, o *operator, held *heldSession) error {
		state := held.GetState()
		switch {
		case o.asJSON:
			return o.document(
				&sidebusv1.SessionsGetStateResponse{State: held.State, Version: held.GetStateVersion()},
			) //nolint:protogetter // nil is not a state
		case held.State == nil:
			o.note("%s has no state", s.String())
			return nil
		case s.Raw:
			_, err := o.out.Write(state)
			return err
		}
		row := []string{
			strconv.FormatInt(held.GetStateVersion(), 10), client.Bytes(int64(len(state))), client.Octets(state),
		}
		return o.table([]string{"VERSION", "SIZE", "STATE"}, [][]string{row})
	})
}

// expectation is a condition of a change.
type expectation struct {
	ExpectedVersion *int64 `name:"expected-version" placeholder:"N" help:"Fail unless the state has this version. 0: no state."`
}

type stateSetCommand struct {
	heldName
	expectation

	Text *string `arg:"" optional:"" help:"The state. Without it, or with -, the state is read from stdin. An empty state is a state too."`
	File string  `name:"file" short:"f" placeholder:"FILE" help:"Read the state from a file."`
}

// Run replaces the state of a session, which is held for a moment only: the state is read before.
func (s *stateSetCommand) Run(ctx context.Context, to terminal.Streams) error {
	if s.File != "" && s.Text != nil {
		return cli.Misuse("--file and a state on the command line exclude each other")
	}
	state := []byte{} // never nil, which clears
	prepare := func(ctx context.Context, o *operator) error {
		read, err := s.read(ctx, o)
		state = append(state, read...)
		return err
	}
	return s.run(ctx, to, prepare, func(ctx context.Context, o *operator, held *heldSession) error {
		version, err := held.setState(ctx, state, s.ExpectedVersion)
		if err != nil || o.asJSON {
			return err
		}
		return o.say("set the state of %s: %s, version %d", s.String(), client.Bytes(int64(len(state))), version)
	})
}

// read returns the state to set.
func (s *stateSetCommand) read(ctx context.Context, o *operator) ([]byte, error) {
	switch {
	case s.File != "" && s.File != "-":
		state, err := os.ReadFile(s.File)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		return state, nil
	case s.Text != nil && *s.Text != "-":
		return []byte(*s.Text), nil
	}
	if o.CanAsk {
		o.note("reading from the terminal; end with Ctrl-D")
	}
	state, err := await(ctx, func() ([]byte, error) { return io.ReadAll(o.Stdin) })
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	return state, nil
}

type stateClearCommand struct {
	heldName
	expectation
}

// Run removes the state of a session.
func (s *stateClearCommand) Run(ctx context.Context, to terminal.Streams) error {
	return s.run(ctx, to, nil, func(ctx context.Context, o *operator, held *heldSession) error {
		if _, err := held.setState(ctx, nil, s.ExpectedVersion); err != nil || o.asJSON {
			return err
		}
		return o.say("cleared the state of %s", s.String())
	})
}

// setState sets the state, nil clears it, and prints the answer as JSON if that is asked for.
func (h *heldSession) setState(ctx context.Context, state []byte, expected *int64) (int64, error) {
	answer, err := h.o.Sessions.SetState(ctx, &sidebusv1.SessionsSetStateRequest{
		Source: h.source, LockToken: h.GetLockToken(), State: state, ExpectedVersion: expected,
	})
	if err != nil || !h.o.asJSON {
		return answer.GetVersion(), err
	}
	return answer.GetVersion(), h.o.document(answer)
}
