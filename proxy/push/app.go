package push

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Pauses while the app takes no connections, or a source cannot be received from: each twice the last, less up to half
// by chance, so that many sidecars do not come all at once.
const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// backOff gives the pause before each try.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, minBackoff), maxBackoff)
	return b.last/2 + rand.N(b.last/2) //nolint:gosec // no secret
}

// appState is what is known of the app.
type appState int

const (
	appUp      appState = iota
	appDown             // it takes no connections; nothing is pushed until a pause is over
	appProbing          // one message is pushed to find out, the others wait for that
)

// app watches over whether the app takes connections. While it does not, no messages are taken for it, so that none is
// under lock.
type app struct {
	onChange func(isUp bool, err error, lasted time.Duration) // what has changed

	mu           sync.Mutex
	grant        func(credits int) // lets so many messages be taken
	credits      int               // credits when the app is well; 0: nothing is taken
	probeCredits int               // credits for a probe
	state        appState
	hasProbe     bool          // a call is the probe
	changed      chan struct{} // closed and replaced whenever state or isTaken change
	pause        backoff
	timer        *time.Timer // ends the pause
	since        time.Time   // of the outage
}

func newApp(told func(isUp bool, err error, lasted time.Duration)) *app {
	return &app{onChange: told, changed: make(chan struct{})}
}

// begin lets messages be taken, with up to so many credits, which grant gives out. It does not block, and neither must
// grant.
func (a *app) start(credits int, grant func(credits int)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grant, a.credits, a.probeCredits = grant, credits, 1
	if a.state == appUp {
		a.grant(credits)
	} else {
		a.down()
	}
}

// end lets nothing be taken any more.
func (a *app) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.credits = 0
	if a.timer != nil {
		a.timer.Stop()
	}
}

// keepsSome notes that the app may have messages beside those that are being pushed. They use credits, nobody knows how
// many, so from now on a probe gets all.
func (a *app) probeWithAllCredits() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probeCredits = a.credits
}

// enter asks for leave to push. It blocks while another push probes the app. ok is false when the app is down or ctx
// ends. Who gets leave must call leave in the end.
func (a *app) acquire(ctx context.Context) (isProbe, ok bool) {
	for {
		a.mu.Lock()
		state, changed := a.state, a.changed
		isProbe = state == appProbing && !a.hasProbe
		if isProbe {
			a.hasProbe = true
		}
		a.mu.Unlock()
		switch {
		case state == appUp || isProbe:
			return isProbe, true
		case state == appDown:
			return false, false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false, false
		}
	}
}

// leave ends a push. When the probe has not found out anything another push has to.
func (a *app) release(isProbe bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if isProbe && a.state == appProbing {
		a.hasProbe = false
		a.signal()
	}
}

// reached notes that a push has got a connection. One that began before the app went down says nothing about it now.
func (a *app) reached(isProbe bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isProbe || a.state != appProbing {
		return
	}
	a.state, a.hasProbe, a.pause = appUp, false, backoff{}
	a.signal()
	a.onChange(true, nil, time.Since(a.since))
	a.grant(a.credits)
}

// refused notes that a push got no connection.
func (a *app) refused(isProbe bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.state == appUp && !isProbe:
		a.since = time.Now()
		a.onChange(false, err, 0)
	case a.state == appProbing && isProbe:
	default:
		return
	}
	a.down()
}

// down lets nothing be taken until a pause is over. The caller holds the mutex.
func (a *app) down() {
	a.state, a.hasProbe = appDown, false
	a.signal()
	a.grant(0)
	if a.credits > 0 {
		a.timer = time.AfterFunc(a.pause.next(), a.probe)
	}
}

func (a *app) probe() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != appDown || a.credits == 0 {
		return
	}
	a.state = appProbing
	a.signal()
	a.grant(a.probeCredits)
}

func (a *app) signal() {
	close(a.changed)
	a.changed = make(chan struct{})
}
