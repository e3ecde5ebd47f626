package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/sealed"
)

// Options select and configure a Redis. Only URL is required. The callbacks run in the goroutine of the call that
// caused them: they must be safe for concurrent use and must not block. Each may be nil.
type Options struct {
	// URL is redis://, rediss:// (TLS) or unix:// with user, password, host, port and database as go-redis reads them;
	// or redis+sentinel://[user:password@]host:port,host:port/<master>[/<database>], whose user and password are those
	// of the master; or redis+cluster://[user:password@]host:port,host:port; or rediss+sentinel, rediss+cluster with
	// TLS.
	URL string
	// Namespace is the key prefix; empty means "default".
	Namespace string
	// AllowEviction accepts a Redis that may evict keys, and with them messages.
	AllowEviction bool
	// DialTimeout, ReadTimeout and WriteTimeout bound one try each; zero means 5 s, 3 s, 3 s.
	DialTimeout, ReadTimeout, WriteTimeout time.Duration
	// PoolSize is the most connections; zero means 10 per core.
	PoolSize int
	// TLSCAFile, TLSCertFile and TLSKeyFile are PEM files for rediss://; empty means the system's roots, no client
	// certificate.
	TLSCAFile, TLSCertFile, TLSKeyFile string
	// TLSInsecureSkipVerify accepts any server certificate. For tests.
	TLSInsecureSkipVerify bool
	// LazyExpiry makes Sweep leave expired messages until a call reads their queue (TTL-7, TTL-20).
	LazyExpiry bool
	// Observe is called after every script call, with its status word, or "error".
	Observe func(script, status string, took time.Duration)
	// DeadLettered is called after a script of this Store made messages dead letters, with their sequence numbers and
	// the cause: "Application", or one of the reasons that the broker sets (DLQ-24).
	DeadLettered func(entity, cause string, numbers []int64)
	// Orphaned is called after a script dropped what was left of messages that are not in their log, with their
	// positions there: another client has changed the keys (docs/decisions/0013).
	Orphaned func(entity string, positions []int64)
	// Removed is called after a sweeper of this Store deleted an idle entity (IDLE-1).
	Removed func(kind semantics.Kind, path string)
	// UpkeepFailed is called, once for each cause, for an entity that Sweep cannot process until an operator repairs
	// it; "" stands for the sweeper's own keys.
	UpkeepFailed func(entity string, err error)
	// RemovalGrace is how long Sweep deletes no idle entity after its start and after an outage. For tests; zero means
	// semantics.NoteEvery and 10 s.
	RemovalGrace time.Duration
	// IdleTime is how long a connection stays open that no call needs. For tests; zero means a minute.
	IdleTime time.Duration
	// Durability is what sends and settlements wait for.
	Durability Durability
	// MaxEntities is the most queues and topics the namespace may have (QUOTA-1); zero: no bound.
	MaxEntities int64
	// TopicLimits are what a topic may have. For tests; zero in production.
	TopicLimits TopicLimits
	// PayloadKeys returns the keys, as they are now, with which bodies and session states are encrypted (CRYPT-1). nil
	// for no encryption; then what is encrypted cannot be read.
	PayloadKeys func() *sealed.Keys
	// Now replaces Redis' clock. For tests; nil in production.
	Now func() time.Time
}

// Store keeps entities and messages in one Redis. It implements semantics.Store and semantics.Checker and is safe for
// concurrent use. Any number of Stores in any number of processes may share a Redis and namespace.
type Store struct {
	servers servers
	options Options
	sealing sealing

	isCluster bool
	compare   atomic.Pointer[func(ctx context.Context, path string) error] // a partition with its record

	scripts map[string]script
	// guardedScripts are for partitions of a cluster; nil elsewhere.
	guardedScripts map[string]script

	tag      semantics.SidecarTag
	sidecar  string // the name of this process on waiting lists, which begins with the tag
	wakeups  *wakeups
	sends    joiner[sendCalls]
	receives joiner[*receiveCall]
	settles  joiner[*settleCall]
	nexts    joiner[*nextCall]

	publishes  joiner[publishCalls]
	turns      joiner[turnCalls]
	accepts    joiner[*acceptCall]
	closes     joiner[*closeCall]
	unanswered unanswered

	namespace  string
	registries []*registry
	keyed      *learnt[bool]      // queues whose sends need message ids
	separate   *learnt[time.Time] // queues whose messages could not be sent in chunks, and until when to remember it
	apart      *learnt[time.Time] // queues that could not complete and receive in one step, and until when
	levels     *learnt[keyLevel]  // the keys that copies of a subscription need, if they are more than levelPlain

	asked   *learnt[string] // durability that entities ask for, by the first key of the script that said it
	anyAsks atomic.Bool     // some entity did

	checkMutex sync.Mutex
	checking   *check                  // the one that is under way
	asking     map[string]*serverCheck // those that are under way, by address; under checkMutex
	loaded     sync.Map                // the run of each server that has all scripts, by address

	large chan struct{} // held while a large message is read

	fenced     chan struct{} // has an element for each call that waits for durability
	hasWaitAOF atomic.Bool   // every server has the command WAITAOF
	isFit      atomic.Bool   // a check has succeeded

	idling    sync.WaitGroup // closes idle connections
	endIdling func()

	alarming    sync.WaitGroup // alarms that are being set
	removesFrom atomic.Int64   // in Unix nanoseconds: before that Sweep removes nothing
}

var (
	_ semantics.Store   = (*Store)(nil)
	_ semantics.Checker = (*Store)(nil)
	_ semantics.Sweeper = (*Store)(nil)
)

// Open returns a Store, which the caller must Close. It checks the options and loads the scripts into memory; it does
// not connect: use Check for that. Errors: INVALID_ARGUMENT for a URL or namespace that is not valid, others for
// unreadable TLS files.
func Open(options Options) (*Store, error) {
	namespace := options.Namespace
	if namespace == "" {
		namespace = "default"
	}
	if _, err := semantics.ParseNamespace(namespace); err != nil {
		return nil, err
	}
	scripts, err := prepared()
	if err != nil {
		return nil, err
	}
	redis.SetLogger(quiet{}) // its lines repeat the errors that calls return
	options.ReadTimeout = or(options.ReadTimeout, readTimeout)
	if options.Durability.Level != semantics.DurabilityMemory {
		options.ReadTimeout += options.Durability.timeout()
	} else { // entities may ask for more
		options.ReadTimeout = max(options.ReadTimeout, options.Durability.Timeout+readTimeout/2)
	}
	tag := newTag()
	s := &Store{
		options: options, sealing: sealing{options.PayloadKeys}, namespace: namespace,
		scripts: scripts, tag: tag, sidecar: newSidecarName(tag),
		keyed: newLearnt[bool](), separate: newLearnt[time.Time](), apart: newLearnt[time.Time](),
		levels: newLearnt[keyLevel](),
		asked:  newLearnt[string](),
		large:  make(chan struct{}, 1), fenced: make(chan struct{}, mostFenced(options.PoolSize)),
		asking: map[string]*serverCheck{},
	}
	conns := newOpenConns(options)
	if s.servers, err = connect(options, s.noteConnection, conns); err != nil {
		return nil, err
	}
	if _, s.isCluster = s.servers.(*cluster); s.isCluster {
		s.guardedScripts = guardedScripts()
	}
	end := make(chan struct{})
	s.endIdling = sync.OnceFunc(func() { close(end) })
	s.idling.Go(func() { conns.run(end) })
	s.registries = registriesOf(namespace, s.servers)
	s.wakeups = newWakeups(s.servers)
	s.sends = joiner[sendCalls]{run: s.runSends, weigh: sendCalls.weight, full: fullSend, most: mostSend}
	s.publishes = joiner[publishCalls]{
		run:   s.runPublishes,
		weigh: publishCalls.weight,
		full:  fullPublish,
		most:  mostPublish,
	}
	s.receives = joiner[*receiveCall]{
		run:   s.runReceives,
		weigh: (*receiveCall).weight,
		full:  fullReceive,
		most:  mostReceive,
	}
	s.turns = joiner[turnCalls]{run: s.runTurns, weigh: turnCalls.weight, full: fullTurn, most: mostTurn}
	s.accepts = joiner[*acceptCall]{
		run: s.runAccepts, weigh: func(*acceptCall) int { return 1 }, full: fullSessions, most: mostSessions,
	}
	s.closes = joiner[*closeCall]{
		run: s.runCloses, weigh: func(*closeCall) int { return 1 }, full: fullSessions, most: mostSessions,
	}
	s.settles = joiner[*settleCall]{run: s.runSettles, weigh: (*settleCall).weight, full: fullSettle, most: mostSettle}
	s.nexts = joiner[*nextCall]{run: s.runNexts, weigh: (*nextCall).weight, full: fullReceive, most: mostReceive}
	return s, nil
}

// readTimeout is the default of the client.
const readTimeout = 3 * time.Second

// noteConnection makes Sweep check whether Redis has been restarted or replaced.
func (s *Store) noteConnection(context.Context, *redis.Conn) error {
	for _, r := range s.registries {
		signal(r.connected)
	}
	return nil
}

// quiet drops the log lines of the Redis client.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// Close closes all connections. Calls under way fail.
func (s *Store) Close() error {
	s.wakeups.close()
	err := s.servers.Close()
	s.alarming.Wait()
	s.endIdling()
	s.idling.Wait()
	return err
}

func (s *Store) keys(path string) entityKeys { return keysOfEntity(s.namespace, path) }

func (s *Store) keysOf(source semantics.Source) entityKeys { return s.keys(keptAt(source)) }

func newTag() (tag semantics.SidecarTag) {
	binary.BigEndian.PutUint32(tag[:], rand.Uint32()) //nolint:gosec // a name, not a secret
	return tag
}

// newSidecarName returns a name that begins with the tag of the sidecar.
func newSidecarName(tag semantics.SidecarTag) string {
	return tag.String() + newTag().String()
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value != zero {
		return value
	}
	return otherwise
}

func setTLS(c *tls.Config, o Options) error {
	c.InsecureSkipVerify = c.InsecureSkipVerify || o.TLSInsecureSkipVerify
	if o.TLSCAFile != "" {
		pem, err := os.ReadFile(o.TLSCAFile)
		if err != nil {
			return fmt.Errorf("redis TLS CA file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("redis TLS CA file %s holds no PEM certificate", o.TLSCAFile)
		}
	}
	if o.TLSCertFile != "" || o.TLSKeyFile != "" {
		certificate, err := tls.LoadX509KeyPair(o.TLSCertFile, o.TLSKeyFile)
		if err != nil {
			return fmt.Errorf("redis TLS client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	return nil
}
