// Package storetest is the conformance suite of semantics.Store. Run checks a store against the rules of
// spec/semantics.md, one test for each rule and named after it; RunModel compares a store with another one step by
// step. The suite is for test packages only.
//
// Rules that Broker enforces are tested through a Broker over the store, because a client meets both together.
package storetest

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Harness is a store under test. It is private to one test and empty.
type Harness struct {
	Store semantics.Store

	// Now reads the store's clock, which has millisecond precision. Only Advance moves it.
	Now func() time.Time

	// Advance moves the store's clock forward. It may be called while receives wait.
	Advance func(time.Duration)

	// Peer opens one more Store over the same data, as another sidecar has it. Nil where there is no such thing.
	Peer func() semantics.Store

	// Sweep does in Store, or in one that Peer opened, what is due now, as every sidecar does in the background.
	Sweep func(ctx context.Context, store semantics.Store, upkeep semantics.Upkeep) error

	// WithTopicLimits opens another Store, with the same clock and no data yet, in which the subscriptions of one topic
	// may be and have only so many (RULE-4).
	WithTopicLimits func(subscriptions, sqlFilters, correlationFilters int) semantics.Store

	// IsApart: no step changes two entities, so that dead letters go to another queue by a transfer.
	IsApart bool

	// Audit looks into what Store keeps of a queue or topic and returns what does not fit together. Nil where there is
	// nothing to look into.
	Audit func(path string) error

	// Reference opens a store that must refuse the same calls with the same texts. Nil where Store is the reference.
	Reference func(t *testing.T) Harness
}

// Run runs every test of the suite, all in parallel, each on a store of its own from open. open may register clean-up
// with its t.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	all := slices.Concat(
		messageTests, sendTests, entityTests, optionTests, statusTests, countTests, receiveTests, nextBatchTests, waitTests, consumerTests,
		scheduleTests, onceTests, cancelTests, deferTests, deferExpiryTests, duplicateTests, purgeTests, modifiedTests, delayTests,
		resubmitTests, resubmitTopicTests, resubmitDuplicateTests, resubmitQueueTests, keepingTests, countEveryStateTests,
		availableSinceTests,
		lockTests, alteredTokenTests, settleTests, deliveryCountTests, lifetimeTests, deadLetterTests, peekTests, quotaTests, errorTests,
		watchTests, useTests,
		sessionKindTests, sessionEntityTests, sessionStatusTests, sessionAcceptTests, sessionReadyTests, sessionLockTests,
		sessionCloseTests, sessionLockEndTests, sessionCountTests, sessionOrderTests, sessionDelayTests, sessionStateTests,
		sessionStateTTLTests, sessionListTests, sessionBlockTests, sessionExpiryTests, sessionMessageTests, sessionSequenceTests,
		sessionWaitTests, sessionWaitEndTests, sessionReceiveWaitTests, sessionUseTests, sessionDrainTests, sessionManyTests, receiversTests,
		topicCopyTests, topicMatchTests, topicExactTests, topicRuleTests, topicQuotaTests, topicEntityTests, topicDeleteTests,
		topicStatusTests, topicScheduleTests, topicReceiveTests, topicDuplicateTests,
		forwardTests, forwardStepTests, forwardRefusedTests, forwardArrivalTests, forwardHopTests, forwardDeadTests,
		forwardEntityTests, undeliveredTests, unmatchedTests,
		partitionTests, partitionIdleTests, partitionTopicTests, partitionTopicHalfwayTests, partitionTopicUseTests,
		partitionTopicForwardTests, partitionTopicDeletedTests, partitionAnswerTests,
		partitionMissingTests, partitionAgainTests, partitionDeletedTests, partitionRememberedTests,
		partitionSessionTests, partitionDuplicateTests, partitionForwardTests, partitionResubmitTests,
		partitionTransactTests, transactTests, idleTests, idleActivityTests, idleTopicTests, largeTests, oddTextTests,
	)
	for _, test := range all {
		t.Run(ruleName(test), func(t *testing.T) {
			t.Parallel()
			try(t, test, open(t))
		})
	}
	runTogether(t, open)
	runThroughTopics(t, open)
	runTopicsOverPartitions(t, open)
	runApart(t, open)
	runOverPartitions(t, open)
}

// try runs the test of a rule on a store, and on its reference if it has one.
func try(t *testing.T, test ruleTest, harness Harness) {
	t.Helper()
	h := newFixture(t, harness)
	var reference *fixture // stays nil if the names that were asked for leave it out
	t.Cleanup(func() {     // when subtests have ended too
		if reference != nil && !t.Failed() {
			h.wantRefusalsOf(t, reference)
		}
	})
	test(t, h)
	if harness.Reference != nil {
		t.Run("reference", func(t *testing.T) {
			reference = newFixture(t, harness.Reference(t))
			test(t, reference)
		})
	}
}

// ruleTest is the test of one rule. Its function is called test followed by rule and content.
type ruleTest = func(t *testing.T, h *fixture)

// ruleName turns testLOCK_3_RenewSetsFullDuration into LOCK_3_RenewSetsFullDuration.
func ruleName(test ruleTest) string {
	name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
	return strings.TrimPrefix(name[strings.LastIndex(name, ".")+1:], "test")
}

// Clock is a clock for tests that stands still until it is moved. It is safe for concurrent use; make one with
// NewClock.
type Clock struct{ at chan time.Time } // holds the one value

// NewClock returns a Clock that shows some instant of the present century.
func NewClock() *Clock {
	c := &Clock{at: make(chan time.Time, 1)}
	c.at <- time.Date(2026, 3, 29, 1, 59, 59, 987_000_000, time.UTC)
	return c
}

// Now reads the clock.
func (c *Clock) Now() time.Time {
	now := <-c.at
	c.at <- now
	return now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) { c.at <- (<-c.at).Add(d) }
