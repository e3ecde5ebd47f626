package verbs

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
)

// Pauses between two looks at the sidecar: short at first, because it starts in a fraction of a second.
const (
	firstLook = 10 * time.Millisecond
	mostLook  = 250 * time.Millisecond
)

type waitCommand struct {
	settings.Admin
	tlsSettings

	Timeout time.Duration `default:"30s" placeholder:"TIME" help:"How long to wait."`
}

// Run blocks until /startup answers 200. When it does not in time, the error says why it did not last.
func (w *waitCommand) Run(ctx context.Context) error {
	client, err := newAdminClient(w.AdminAddr, w.tlsSettings)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	reason := "it did not answer"
	for pause := firstLook; ; pause = min(2*pause, mostLook) {
		status, body, err := client.call(ctx, http.MethodGet, "/startup")
		switch {
		case err == nil && status == http.StatusOK:
			return nil
		case err == nil && status == http.StatusNotFound:
			reason = notAdminAddr
		case err == nil:
			reason = fmt.Sprintf("it answers %d: %s", status, body)
		case ctx.Err() == nil:
			reason = err.Error() + "; " + startOne
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return fmt.Errorf(
				"the sidecar at %s was not ready within %s: %s", w.AdminAddr, duration.Text(w.Timeout), reason,
			)
		}
	}
}
