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
	rightsPause  = 5 * time.Second  // between two looks at what a caller may see
)

// about is the first part of each event: the sidecar.
type about struct {
	Namespace string           `json:"namespace"`
	Version   string           `json:"version"`
	Caller    string           `json:"caller,omitempty"`
	ReadOnly  bool             `json:"readOnly"`
	Alone     bool             `json:"alone,omitempty"` // the console is a process of its own, which receives no messages
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
	Failing   *failing   `json:"failing,omitempty"`   // the counts are old
	isTrouble bool       // that has changed
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

	has     map[string]string // paths of the entities that it has, by key
	checked time.Time         // when it was last checked that it may have them
	failing failing           // that it has
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
	leave, err := c.watch.open(cmp.Or(caller.Name(), admission.ClientOf(r.Context())), shows)
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
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

// tooManyPages is the refusal of a page of a client that has so many.
func tooManyPages(has int) error {
	e := semantics.Errorf(
		semantics.Throttled, "you have %d pages of the console open, and the sidecar keeps as many for others; close some",
		has,
	)
	e.RetryAfter = time.Second
	return e
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
		e.Receivers != nil || e.isTrouble
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
	p.rows(e, w)
	seesAll := p.caller.Permit(access.Right{Claims: access.Listen}) == nil
	p.trouble(e, w, seesAll)
	if seesAll {
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

// rows puts into an event what has changed of the entities. Every few seconds it compares what the page has with what
// the caller may see, because a policy may change: what it may no longer see goes, and what it may see comes.
func (p *page) rows(e *event, w *watch) {
	compares := e.Reset || time.Since(p.checked) >= rightsPause
	if e.Reset {
		p.has = map[string]string{}
	}
	if compares {
		p.checked = time.Now()
	}
	for _, one := range w.entities {
		_, has := p.has[one.key]
		if !compares && one.version <= p.version {
			continue
		}
		switch sees := p.sees(one.key); {
		case !sees && has:
			e.Gone = append(e.Gone, p.has[one.key])
			delete(p.has, one.key)
		case sees && (!has || one.version > p.version):
			r := one.row
			if p.version == 0 {
				r.Recent = one.history.recent(time.Now())
			}
			e.Rows, p.has[one.key] = append(e.Rows, r), one.Path
		}
	}
	slices.SortFunc(e.Rows, func(a, b row) int { return cmp.Compare(a.Path, b.Path) })
	for _, gone := range w.removed {
		if !e.Reset && gone.version > p.version && p.sees(gone.path) {
			e.Gone = append(e.Gone, gone.path)
		}
	}
	for key, path := range p.has {
		if w.entities[key] == nil { // deleted, also when its removal was not told because the caller might not see it
			delete(p.has, key)
			if !slices.Contains(e.Gone, path) {
				e.Gone = append(e.Gone, path)
			}
		}
	}
}

// trouble puts into an event that the counts are old, or that they no longer are.
func (p *page) trouble(e *event, w *watch, seesAll bool) {
	now := w.failing
	if !seesAll {
		now.Reason = ""
	}
	if now.Since != 0 {
		e.Failing = &now
	}
	e.isTrouble, p.failing = now != p.failing, now
}

// news returns what is known of the sidecar, unless the page has it.
func (p *page) news(ctx context.Context) *about {
	c := p.console.config
	a := about{
		Namespace: c.Namespace, Version: c.Version, Caller: p.caller.Name(), ReadOnly: c.ReadOnly, Alone: c.Always,
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
