package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
)

type drainCommand struct {
	settings.Admin
	tlsSettings

	Timeout *time.Duration `placeholder:"TIME" help:"How long to wait until clients hold no messages or sessions. Default: --drain-timeout of the sidecar."`
}

// answerTime is what a sidecar gets beyond the drain itself.
const answerTime = 5 * time.Second

// Run makes the sidecar drain, blocks until clients hold nothing or the timeout has passed, and prints what is left.
func (d *drainCommand) Run(ctx context.Context, to terminal.Streams) error {
	client, err := newAdminClient(d.AdminAddr, d.tlsSettings)
	if err != nil {
		return err
	}
	path, most := "/drain", settings.MaxDrainTimeout
	if d.Timeout != nil {
		if *d.Timeout < 0 || *d.Timeout > settings.MaxDrainTimeout {
			return cli.Misuse(
				"--timeout is %s, must be 0s to %s", duration.Text(*d.Timeout), duration.Text(settings.MaxDrainTimeout),
			)
		}
		path, most = path+"?timeout="+url.QueryEscape(d.Timeout.String()), *d.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, most+answerTime)
	defer cancel()
	status, body, err := client.call(ctx, http.MethodPost, path)
	if err != nil {
		return fmt.Errorf("no sidecar answers at %s: %w; %s", d.AdminAddr, err, startOne)
	}
	if status == http.StatusNotFound {
		return fmt.Errorf("%s: %s", d.AdminAddr, notAdminAddr)
	}
	var left struct{ Held *int }
	if json.Unmarshal([]byte(body), &left) != nil || status != http.StatusOK || left.Held == nil {
		return fmt.Errorf("the sidecar at %s answers %d: %s", d.AdminAddr, status, body)
	}
	_, err = fmt.Fprintf(to.Stdout, "draining; messages and sessions that clients hold: %d\n", *left.Held)
	return err
}
