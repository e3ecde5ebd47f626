package push

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/settling"
)

// appState is what is known about the app.
type appState int

const (
	appUp      appState = iota
	appDown             // it accepts no connections; nothing is pushed until a pause has elapsed
	appProbing          // one message is pushed as a probe, the others wait for its result
)

// app tracks whether the app accepts connections. While it does not, no messages are received for it, so that none is
// locked.
type app struct {
	onChange func(isUp bool, err error, lasted time.Duration) // called on each change of state

	mu           sync.Mutex
	grant        func(credits int) // sets the credits of the subscription
	credits      int               // while the app is up; 0: stopped
	probeCredits int               // while the app is probed
	state        appState
	hasProbe     bool          // a push is the probe
	changed      chan struct{} // closed and replaced when state or hasProbe changes
	pause        settling.Backoff
	timer        *time.Timer // starts the next probe
	since        time.Time   // of the outage
}

func newApp(onChange func(isUp bool, err error, lasted time.Duration)) *app {
	return &app{onChange: onChange, changed: make(chan struct{})}
}

// start lets up to credits messages be received, by calling grant. Neither start nor grant blocks.
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

// stop lets no more messages be received.
func (a *app) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.credits = 0
	if a.timer != nil {
		a.timer.Stop()
	}
}

// probeWithAllCredits notes that the app has messages that it settles later. They use an unknown number of credits, so
// a probe with one credit might never come.
func (a *app) probeWithAllCredits() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probeCredits = a.credits
}

// acquire blocks until a push may start, which it does while another push probes the app. ok is false if the app is
// down or ctx ends. After success the caller must call release.
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

// release ends a push. If it was a probe without a result, another push becomes the probe.
func (a *app) release(isProbe bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if isProbe && a.state == appProbing {
		a.hasProbe = false
		a.signal()
	}
}

// reached notes that a push got a connection. Only a probe changes the state: other pushes began before the app went
// down.
func (a *app) reached(isProbe bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isProbe || a.state != appProbing {
		return
	}
	a.state, a.hasProbe, a.pause = appUp, false, settling.Backoff{}
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

// down lets no messages be received until a pause has elapsed. The caller holds the mutex.
func (a *app) down() {
	a.state, a.hasProbe = appDown, false
	a.signal()
	a.grant(0)
	if a.credits > 0 {
		a.timer = time.AfterFunc(a.pause.Next(), a.probe)
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
