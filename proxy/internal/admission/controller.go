package admission

import (
	"container/list"
	"log/slog"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/lograte"
	"github.com/sidebus/sidebus/semantics"
)

const (
	reserveShare   = 10                     // 1/reserveShare of the connections is for calls that do not wait (QUOTA-5)
	maxExcess      = 100                    // HTTP connections over the limit that stay open to be answered THROTTLED
	unusedGrace    = time.Second            // an unused connection is not closed earlier
	minWait        = time.Second            // a wait is not ended earlier in favor of another call
	maxConnWaits   = maxStreams * 9 / 10    // waits of one connection; the other streams are for other calls
	maxStreams     = 10_000                 // concurrent calls of one gRPC connection
	logInterval    = 30 * time.Second       // least time between two log lines about the same refusal
	waitRetryAfter = 500 * time.Millisecond // RetryAfter of a wait that was refused
)

// Controller admits connections and requests. It is safe for concurrent use.
type Controller struct {
	memory *memoryBudget

	maxConnections, reserve int
	readTimeout             time.Duration
	metrics                 *obs.Metrics
	connectionLog           *lograte.Logger
	requestLog              *lograte.Logger
	responseLog             *lograte.Logger

	mu         sync.Mutex
	open       int       // admitted connections
	longLived  int       // of those, connections whose calls all wait or are streams
	idle       list.List // of *Conn without a call in flight, the longest idle first
	unused     list.List // of *Conn that have not carried a call, oldest first
	reading    list.List // of *Conn none of whose requests has fully arrived, oldest first
	waiting    list.List // of *Conn all of whose calls wait, the longest wait first
	excess     int       // open connections over the limit
	isStopping bool      // gRPC connections are refused
}

// Config has the limits of a Controller.
type Config struct {
	MaxConnections int           // open at a time
	MaxMemory      int64         // bytes for requests in flight, and as many for responses
	ReadTimeout    time.Duration // for a request to arrive, plus one second for each 64 KiB of it
}

// New returns a Controller. metrics and logger must not be nil.
func New(config Config, metrics *obs.Metrics, logger *slog.Logger) *Controller {
	return &Controller{
		memory: &memoryBudget{
			limit:         config.MaxMemory,
			requestGauge:  metrics.RequestMemory,
			responseGauge: metrics.AnswerMemory,
		}, maxConnections: config.MaxConnections, reserve: max(config.MaxConnections/reserveShare, 1),
		readTimeout: config.ReadTimeout, metrics: metrics,
		connectionLog: lograte.New(logger, "connections or waits refused; too many are open", logInterval),
		requestLog:    lograte.New(logger, "requests refused; requests in flight use all request memory", logInterval),
		responseLog:   lograte.New(logger, "receives or peeks refused; unread responses use all response memory", logInterval),
	}
}

// requestRefused counts and logs a request that was refused for lack of memory.
func (ctl *Controller) requestRefused() {
	ctl.metrics.RequestsRefused.Inc()
	ctl.requestLog.Warn("limit", ctl.memory.limit)
}

// admit counts a new connection and reports whether it may stay open. With mayRespond, some connections over the limit
// stay open too, so that their requests are answered THROTTLED.
func (ctl *Controller) admit(c *Conn, mayRespond bool) (ok bool) {
	ctl.mu.Lock()
	ctl.open++
	evicted := ctl.evict()
	isExcess := ctl.open > ctl.maxConnections || ctl.isStopping && c.wire == obs.GRPC
	switch {
	case !isExcess:
		c.moveTo(&ctl.unused)
	case !mayRespond || ctl.excess >= maxExcess:
		ctl.open--
		c.isReleased = true
	default:
		ctl.open-- // silent ones must not shut out other clients
		ctl.excess++
		c.isExcess = true
	}
	ok = !c.isReleased
	isStopping := ctl.isStopping
	ctl.mu.Unlock()
	if evicted != nil {
		evicted.closeIdle()
	}
	if isExcess && !isStopping {
		ctl.metrics.ConnectionsRefused.WithLabelValues(c.wire).Inc()
		ctl.connectionLog.Warn("limit", ctl.maxConnections)
	}
	return ok
}

// CloseUnused closes gRPC connections that have not sent a frame and refuses new ones. Without it, GracefulStop of
// grpc-go waits for them.
func (ctl *Controller) CloseUnused() {
	ctl.mu.Lock()
	ctl.isStopping = true
	var unused []*Conn
	for e := ctl.unused.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*Conn); c.wire == obs.GRPC && !c.hasFrames.Load() {
			unused = append(unused, c)
		}
	}
	ctl.mu.Unlock()
	for _, c := range unused {
		_ = c.Conn.Close() // the server notices and forgets it
	}
}

// evict keeps connections free for calls that do not wait. The caller holds the mutex and, after unlocking it, must
// call closeIdle of the returned connection, if any.
func (ctl *Controller) evict() *Conn {
	if ctl.open <= ctl.maxConnections-ctl.reserve {
		return nil
	}
	for _, conns := range []*list.List{&ctl.idle, &ctl.unused, &ctl.reading} {
		if first := conns.Front(); first != nil {
			c := first.Value.(*Conn)
			if conns != &ctl.idle && time.Since(c.since) < unusedGrace {
				continue
			}
			c.release()
			ctl.metrics.ConnectionsIdleEnded.WithLabelValues(c.wire).Inc()
			return c
		}
	}
	if ctl.open > ctl.maxConnections-ctl.reserve/2 {
		ctl.endOldestWaits()
	}
	return nil
}

// endOldestWaits ends the waits of the connection that has waited longest. It reports false if no connection has waited
// for minWait. The caller holds the mutex.
func (ctl *Controller) endOldestWaits() bool {
	first := ctl.waiting.Front()
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

// errTooManyWaits is the error of a wait or stream that was refused.
func errTooManyWaits() error {
	e := semantics.Errorf(
		semantics.Throttled,
		"too many receives and streams wait in this sidecar; use fewer connections, or try again later",
	)
	e.RetryAfter = waitRetryAfter
	return e
}
