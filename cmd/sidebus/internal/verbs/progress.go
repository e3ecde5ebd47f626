package verbs

import (
	"fmt"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
)

// progressFlag is the flag of verbs that may work for long.
type progressFlag struct {
	Progress bool `name:"progress" help:"Show progress on stderr even if it is not a terminal."`
}

// isShown reports whether there is progress to show.
func (p progressFlag) isShown(o *operator) bool { return p.Progress || o.IsWatched }

// progress shows how far long work is: in one line that moves on a terminal, else in a line every few seconds.
type progress struct {
	to          *operator
	what, of    string // such as "sent" and "message"
	total       int64  // 0: unknown
	began, last time.Time
	isOn        bool
	isShown     bool // there is a moving line
}

// moves is how often a line on a terminal moves.
const moves = 200 * time.Millisecond

// progress begins to show progress. total is how much there is to do, 0 if that is not known.
func (o *operator) progress(flag progressFlag, what, of string, total int64) *progress {
	now := time.Now()
	return &progress{to: o, what: what, of: of, total: total, began: now, last: now, isOn: flag.isShown(o)}
}

// tell shows that n are done, when it is time to.
func (p *progress) tell(n int64) {
	pause := p.to.ProgressEvery
	if p.to.IsWatched {
		pause = moves
	}
	now := time.Now()
	if !p.isOn || now.Sub(p.last) < pause {
		return
	}
	p.last = now
	text := p.text(n, now.Sub(p.began))
	if p.to.IsWatched {
		p.isShown = true
		fmt.Fprintf(p.to.Stderr, "\r%s\x1b[K", text)
		return
	}
	p.to.note("%s", text)
}

// text is "removed 4000 of 100000 messages (4 %), 2000/s, 48s left", or count, rate and time where the total is not
// known.
func (p *progress) text(n int64, took time.Duration) string {
	if p.total < n || p.total == 0 {
		return fmt.Sprintf("%s %s, %s", p.what, client.Count(n, p.of), rate(n, took))
	}
	perSecond := float64(n) / max(took.Seconds(), 1e-9)
	text := fmt.Sprintf("%s %d of %s (%d %%), %.0f/s", p.what, n, client.Count(p.total, p.of), 100*n/p.total, perSecond)
	if left := time.Duration(float64(p.total-n) / max(perSecond, 1e-9) * float64(time.Second)); n > 0 &&
		left < 100*duration.Day {
		text += fmt.Sprintf(", %s left", duration.Text(left.Round(time.Second)))
	}
	return text
}

// end takes the moving line away.
func (p *progress) end() {
	if p.isShown {
		fmt.Fprint(p.to.Stderr, "\r\x1b[K")
	}
}

// rate returns n over the time since the beginning.
func (p *progress) rate(n int64) string { return rate(n, time.Since(p.began)) }

func rate(n int64, took time.Duration) string {
	return fmt.Sprintf("%.0f/s in %s", float64(n)/max(took.Seconds(), 1e-9), took.Round(time.Millisecond))
}
