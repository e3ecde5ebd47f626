package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/semantics"
)

// Limits of streams of events.
const (
	maxPages     = 100              // open at a time
	writeTimeout = 30 * time.Second // a page that does not read for so long is closed
	aliveEvery   = 15 * time.Second // between two events, also if nothing has changed and Redis is slow
)

// about is the first part of each event: the sidecar.
type about struct {
	Namespace string           `json:"namespace"`
	Version   string           `json:"version"`
	Caller    string           `json:"caller,omitempty"`
	ReadOnly  bool             `json:"readOnly"`
	Store     readiness.Report `json:"store"`
}

// event is what a page gets.
type event struct {
	Now    int64    `json:"now"` // ms since 1970, by the clock of the sidecar
	About  *about   `json:"about,omitempty"`
	Reset  bool     `json:"reset,omitempty"` // rows are all that there are
	Listed bool     `json:"listed"`          // false: there may be more entities than were sent
	Rows   []row    `json:"rows,omitempty"`
	Gone   []string `json:"gone,omitempty"`
	Totals *columns `json:"totals,omitempty"` // what the page has not of the last hour of all entities together
	Shown  *columns `json:"shown,omitempty"`  // the same of the entity that the page shows alone

	Receivers *receivers `json:"receivers,omitempty"` // of that entity, if they have changed
}

// page is one stream of events.
type page struct {
	console *Console
	caller  access.Caller
	version uint64 // of the watch, that the page has
	shows   string // key of the entity that it shows alone; "": all
	sampled int64  // time of the last sample of the totals that the page has
	seen    int64  // the same of the entity that it shows
	about   []byte // that it has, as JSON
}

// live streams what the caller may see of the entities, and what changes.
func (c *Console) live(w http.ResponseWriter, r *http.Request) {
	if isFromElsewhere(r) {
		refuse(w, semantics.Errorf(semantics.PermissionDenied, "a page of another origin must not open streams"))
		return
	}
	caller, err := c.authenticate(r)
	if err != nil {
		refuse(w, err)
		return
	}
	shows := semantics.Fold(r.URL.Query().Get("entity"))
	if shows != "" {
		if err := caller.Permit(mayCount(shows)); err != nil {
			refuse(w, err)
			return
		}
	}
	if c.watch.openPages() >= maxPages {
		e := semantics.Errorf(semantics.Throttled, "too many pages of the console are open; close some")
		refuse(w, e)
		return
	}
	defer c.watch.open(shows)()
	if shows != "" && !c.watch.knows(shows) {
		c.watch.refresh(r.Context(), shows, c.config.Broker.GetEntity)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not keep events back
	p := &page{console: c, caller: caller, shows: shows}
	ctx, stop := access.While(r.Context(), func() error { return c.mayStay(r, shows) })
	defer stop()
	p.stream(ctx, w)
}

// isFromElsewhere reports whether a page of another origin makes a request. It could not read a stream, but each one
// takes a place and has Redis read, and http.CrossOriginProtection permits all GET requests.
func isFromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// mayStay fails when the caller of a stream no longer proves who it is, or may no longer see the entity that it shows.
func (c *Console) mayStay(r *http.Request, shows string) error {
	caller, err := c.authenticate(r)
	if err == nil && shows != "" {
		err = caller.Permit(mayCount(shows))
	}
	return err
}

// stream writes events until the client is gone.
func (p *page) stream(ctx context.Context, w http.ResponseWriter) {
	to := http.NewResponseController(w)
	alive := time.NewTimer(aliveEvery)
	defer alive.Stop()
	for isDue := false; ; {
		e, next := p.next(ctx)
		if e.isNews() || isDue {
			isDue = false
			alive.Reset(aliveEvery)
			_ = to.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only in tests without a connection
			if err := write(w, e); err != nil {
				return
			}
			if to.Flush() != nil {
				return
			}
		}
		select {
		case <-next:
		case <-alive.C:
			isDue = true
		case <-p.console.stopping:
			return
		case <-ctx.Done():
			return
		}
	}
}

// isNews reports whether a page does not have what is in an event.
func (e *event) isNews() bool {
	return e.About != nil || e.Reset || len(e.Rows) > 0 || len(e.Gone) > 0 || e.Totals != nil || e.Shown != nil ||
		e.Receivers != nil
}

func write(w http.ResponseWriter, e *event) error {
	var text bytes.Buffer
	text.WriteString("data: ")
	if err := json.NewEncoder(&text).Encode(e); err != nil {
		return fmt.Errorf("an event: %w", err)
	}
	text.WriteByte('\n')
	_, err := w.Write(text.Bytes())
	return err
}

// next returns the event after what the page has, and a channel that is closed when there may be another one.
func (p *page) next(ctx context.Context) (*event, <-chan struct{}) {
	e := &event{Now: time.Now().UnixMilli(), About: p.news(ctx)}
	w := p.console.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Listed, e.Reset = w.isListed, p.version == 0 || p.version < w.oldest
	for _, one := range w.entities {
		if (e.Reset || one.version > p.version) && p.sees(one.key) {
			r := one.row
			if p.version == 0 {
				r.Recent = one.history.recent(time.Now())
			}
			e.Rows = append(e.Rows, r)
		}
	}
	slices.SortFunc(e.Rows, func(a, b row) int { return cmp.Compare(a.Path, b.Path) })
	for _, gone := range w.removed {
		if !e.Reset && gone.version > p.version && p.sees(gone.path) {
			e.Gone = append(e.Gone, gone.path)
		}
	}
	if p.caller.Permit(access.Right{Claims: access.Listen}) == nil { // it may see all
		e.Totals = w.totals.since(&p.sampled)
	}
	if one := w.entities[p.shows]; one != nil {
		e.Shown = one.history.since(&p.seen)
		if one.receivers != nil && (p.version == 0 || one.receiversVersion > p.version) {
			e.Receivers = one.receivers
		}
	}
	p.version = w.version
	return e, w.changed
}

// news returns what is known of the sidecar, unless the page has it.
func (p *page) news(ctx context.Context) *about {
	c := p.console.config
	a := about{
		Namespace: c.Namespace, Version: c.Version, Caller: p.caller.Name(), ReadOnly: c.ReadOnly,
		Store: c.Readiness.Report(ctx),
	}
	text, _ := json.Marshal(a) // strings cannot fail
	if bytes.Equal(text, p.about) {
		return nil
	}
	p.about = text
	return &a
}

func (p *page) sees(path string) bool { return p.caller.Permit(mayCount(path)) == nil }

// mayCount is the right to see the counts of an entity: a receiver can count what it can peek at.
func mayCount(path string) access.Right { return access.Right{Claims: access.Listen, Path: path} }

// authenticate returns the caller of a request.
func (c *Console) authenticate(r *http.Request) (access.Caller, error) {
	ctx, _ := obs.WithCall(r.Context())
	ctx, err := admission.Authenticate(ctx, c.config.Authorizer, r.Header.Values("Authorization"))
	return access.CallerIn(ctx), err
}
