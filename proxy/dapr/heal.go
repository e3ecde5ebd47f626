package dapr

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// Bounds of what is asked of Dapr's runtime.
const (
	healTimeout   = 2 * time.Second // of a request
	healGrace     = 3 * time.Second // for a runtime to begin by itself
	healTries     = 5
	healPause     = time.Second
	maxHealAnswer = 4 << 20
	tokenHeader   = "dapr-api-token" //nolint:gosec // the name of a header, not a token
)

// What was done about a restart, as metrics say it.
const (
	healNeedless = "not_needed" // the runtime has begun anew by itself, or has no subscription here
	healDone     = "restarted"
	healFailed   = "failed"
)

// finds tells whether Dapr's runtime is ready while Sidebus begins. Then it was so before: without its component it does not get ready.
func (s *Server) finds(ctx context.Context) bool {
	if len(s.served) == 0 || s.config.HealAddr == "" {
		return false
	}
	response, err := s.ask(ctx, http.MethodGet, "/v1.0/healthz")
	return err == nil && response.status == http.StatusNoContent
}

// heal makes a runtime begin anew that has lost its streams by a restart of Sidebus: it does not open them again by itself. It is told to
// shut down; whoever started it starts it again.
func (s *Server) heal(ctx context.Context) {
	select {
	case <-time.After(cmp.Or(s.config.healGrace, healGrace)):
	case <-ctx.Done():
		return
	}
	outcome := healNeedless
	if s.isDeaf(ctx) {
		s.logger.WarnContext(ctx, "Sidebus was restarted under a running daprd, which has lost its subscriptions by that and is told to shut down, to be started again", "daprd", s.config.HealAddr)
		outcome = s.shutDown(ctx)
	}
	s.metrics.DaprHeals.WithLabelValues(outcome).Inc()
}

// isDeaf tells whether the runtime has subscriptions here and has not begun with them since this process began.
func (s *Server) isDeaf(ctx context.Context) bool {
	if slices.ContainsFunc(s.served, func(one *served) bool { return one.component.hasHeard() }) {
		return false
	}
	answer, err := s.ask(ctx, http.MethodGet, "/v1.0/metadata")
	if err != nil || answer.status != http.StatusOK {
		s.logger.WarnContext(ctx, "daprd does not say which subscriptions it has, so it is left alone", "daprd", s.config.HealAddr, "status", answer.status, "error", err)
		return false
	}
	var about struct {
		Components    []struct{ Name, Type string }
		Subscriptions []struct {
			PubsubName string `json:"pubsubname"`
		}
	}
	if err := json.Unmarshal(answer.body, &about); err != nil {
		s.logger.WarnContext(ctx, "daprd does not say which subscriptions it has, so it is left alone", "daprd", s.config.HealAddr, "error", err)
		return false
	}
	for _, c := range about.Components {
		isOurs := slices.ContainsFunc(s.served, func(one *served) bool { return one.component.typeName() == c.Type })
		for _, sub := range about.Subscriptions {
			if isOurs && sub.PubsubName == c.Name {
				return true
			}
		}
	}
	return false
}

// shutDown tells the runtime to shut down.
func (s *Server) shutDown(ctx context.Context) string {
	var err error
	for range healTries {
		var answer answer
		answer, err = s.ask(ctx, http.MethodPost, "/v1.0/shutdown")
		if err == nil && answer.status == http.StatusNoContent {
			return healDone
		}
		if err == nil {
			err = fmt.Errorf("it answered %d", answer.status)
		}
		select {
		case <-time.After(cmp.Or(s.config.healPause, healPause)):
		case <-ctx.Done():
			return healFailed
		}
	}
	s.logger.ErrorContext(ctx, "daprd does not shut down; its subscriptions get nothing until it is restarted", "daprd", s.config.HealAddr, "error", err)
	return healFailed
}

type answer struct {
	status int
	body   []byte
}

// ask makes a request to the runtime. It knows no proxies: the runtime is beside Sidebus.
func (s *Server) ask(ctx context.Context, method, path string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.config.HealAddr+path, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	if s.config.APIToken != "" {
		request.Header.Set(tokenHeader, s.config.APIToken)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHealAnswer))
	return answer{response.StatusCode, body}, err
}
