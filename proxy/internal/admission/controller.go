package admission

import (
	"container/list"
	"log/slog"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

const (
	reserveShare   = 10                     // one of so many places is kept for calls that do not wait (QUOTA-5)
	maxExcess      = 100                    // connections over the limit that are kept open to be told so, over HTTP
	unusedGrace    = time.Second            // before that a connection without a call is not closed
	minWait        = time.Second            // before that a wait is not ended for another one
	maxConnWaits   = maxStreams * 9 / 10    // most waits of one connection, so that it has streams left for other calls
	maxStreams     = 10_000                 // most calls of one gRPC connection at a time
	waitRetryAfter = 500 * time.Millisecond // after which a wait that found no place may be tried again
)

// Door counts the connections of all wires. It is safe for concurrent use.
type Controller struct {
	memory *memoryBudget

	maxConnections, reserve int
	readTimeout             time.Duration
	metrics                 *obs.Metrics
	refusals                quiet
	shortages               quiet
	unread                  quiet

	mu         sync.Mutex
	open       int       // connections, without those over the limit
	longLived  int       // of them, those whose calls all wait or are streams
	idle       list.List // of *Conn, the longest idle first
	unused     list.List // of *Conn without a call, oldest first
	reading    list.List // of *Conn none of whose requests came whole, oldest first
	waiting    list.List // of *Conn all of whose calls wait, the oldest first
	excess     int       // connections over the limit that are open
	isStopping bool      // no connections over gRPC are let in any more
}

// Config says how wide a Door is.
type Config struct {
	MaxConnections int           // most connections
	MaxMemory      int64         // most memory for requests under way
	ReadTimeout    time.Duration // for a request to arrive, and a second more for each 64 KiB of it
}

// New makes a Door.
func New(config Config, metrics *obs.Metrics, logger *slog.Logger) *Controller {
	d := &Controller{
		memory: &memoryBudget{
			limit:         config.MaxMemory,
			requestGauge:  metrics.RequestMemory,
			responseGauge: metrics.AnswerMemory,
		}, maxConnections: config.MaxConnections, reserve: max(config.MaxConnections/reserveShare, 1),
		readTimeout: config.ReadTimeout, metrics: metrics,
		refusals:  quiet{logger: logger, text: "connections and waits are refused, there are too many"},
		shortages: quiet{logger: logger, text: "requests are refused, those under way take all memory for them"},
		unread: quiet{
			logger: logger,
			text:   "receives and peeks are refused, answers that clients do not read take all memory for them",
		},
	}
	return d
}

// tooMuch notes a request for which there was no memory.
func (d *Controller) requestRefused() {
	d.metrics.RequestsRefused.Inc()
	d.shortages.note("limit", d.memory.limit)
}

// admit counts a connection that came. isOver says that it is one too many, and is only there to be told so; ok is
// false when it must be closed at once.
func (d *Controller) admit(c *Conn, tells bool) (ok bool) {
	d.mu.Lock()
	d.open++
	goes := d.evict()
	isOver := d.open > d.maxConnections || d.isStopping && c.wire == obs.GRPC
	switch {
	case !isOver:
		c.moveTo(&d.unused)
	case !tells || d.excess >= maxExcess:
		d.open--
		c.isReleased = true
	default:
		d.open-- // else some that stay silent would shut out everybody else
		d.excess++
		c.isExcess = true
	}
	ok = !c.isReleased
	isEnding := d.isStopping
	d.mu.Unlock()
	if goes != nil {
		goes.closeIdle()
	}
	if isOver && !isEnding {
		d.metrics.ConnectionsRefused.WithLabelValues(c.wire).Inc()
		d.refusals.note("limit", d.maxConnections)
	}
	return ok
}

// EndSilent closes connections over gRPC on which nothing has begun, and lets no more in: grpc-go would wait for them
// when it stops.
func (d *Controller) CloseUnused() {
	d.mu.Lock()
	d.isStopping = true
	var silent []*Conn
	for e := d.unused.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*Conn); c.wire == obs.GRPC && !c.hasFrames.Load() {
			silent = append(silent, c)
		}
	}
	d.mu.Unlock()
	for _, c := range silent {
		_ = c.Conn.Close() // the server sees that and lets it go
	}
}

// makeRoom sees to it that places for calls that do not wait stay free. The caller holds the mutex, and dismisses the
// connection that is returned when it has let it go.
func (d *Controller) evict() (goes *Conn) {
	if d.open <= d.maxConnections-d.reserve {
		return nil
	}
	for _, line := range []*list.List{&d.idle, &d.unused, &d.reading} {
		if first := line.Front(); first != nil {
			c := first.Value.(*Conn)
			if line != &d.idle && time.Since(c.since) < unusedGrace {
				continue
			}
			c.release()
			d.metrics.ConnectionsIdleEnded.WithLabelValues(c.wire).Inc()
			return c
		}
	}
	if d.open > d.maxConnections-d.reserve/2 {
		d.endOldestWaits()
	}
	return nil
}

// endOldest ends the waits of the connection that has waited longest. It reports false when none has waited long
// enough.
func (d *Controller) endOldestWaits() bool {
	first := d.waiting.Front()
	if first == nil || time.Since(first.Value.(*Conn).since) < minWait {
		return false
	}
	c := first.Value.(*Conn)
	for c.waits.Len() > 0 {
		c.endOldestWait()
	}
	c.closeAfterWait = true
	c.classify()
	return true
}

// errNoPlace is how a wait or a stream fails that finds no place.
func errTooManyWaits() error {
	e := semantics.Errorf(
		semantics.Throttled,
		"too many receives and streams wait in this sidecar; use fewer connections, or ask again later",
	)
	e.RetryAfter = waitRetryAfter
	return e
}
