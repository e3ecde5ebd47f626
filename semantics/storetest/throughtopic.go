package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// runThroughTopics runs the tests of receivers of a queue against subscriptions. With -short it does not: the same Go
// code runs for queues.
func runThroughTopics(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	if testing.Short() {
		return
	}
	of := slices.Concat(
		sendTests, receiveTests, nextBatchTests, waitTests, consumerTests, deferTests, deferExpiryTests, purgeTests, modifiedTests, delayTests,
		resubmitTests, keepingTests, lockTests, alteredTokenTests, settleTests, deliveryCountTests, lifetimeTests, deadLetterTests, peekTests, quotaTests,
		watchTests,
		sessionStatusTests, sessionAcceptTests, sessionReadyTests, sessionLockTests, sessionCloseTests, sessionLockEndTests,
		sessionCountTests, sessionOrderTests, sessionDelayTests, sessionStateTests, sessionStateTTLTests, sessionListTests,
		sessionBlockTests, sessionExpiryTests, sessionMessageTests, sessionSequenceTests, sessionWaitTests, sessionWaitEndTests,
		sessionReceiveWaitTests, sessionUseTests, sessionDrainTests, sessionManyTests,
	)
	for _, test := range of {
		if isOneOf(queuesOnly, test) {
			continue
		}
		t.Run("TOPIC_1_AsFromAQueue/"+ruleName(test), func(t *testing.T) {
			t.Parallel()
			try(t, test, open(t).throughTopic())
		})
	}
}

// throughTopic is the same harness with a throughTopic for each Store.
func (h Harness) throughTopic() Harness {
	h.Store = throughTopic{h.Store}
	if peer := h.Peer; peer != nil {
		h.Peer = func() semantics.Store { return throughTopic{peer()} }
	}
	if reference := h.Reference; reference != nil {
		h.Reference = func(t *testing.T) Harness {
			t.Helper()
			return reference(t).throughTopic()
		}
	}
	return h
}

// queuesOnly are the tests that need what a subscription does not have: scheduled messages, a queue to resubmit to,
// messages that the sender is refused, a name of its own.
var queuesOnly = []ruleTest{
	testCNT_2_SessionsOfEveryState, testDLQ_16_KeepsItsCountAndTimes, testDLQ_22_AnotherTarget, testDLQ_22_Wakes,
	testDLQ_23_IntoAQueueWithoutSessions, testDLQ_23_NeedsASessionID, testIDLE_7_ListingSessionsIsNoActivity,
	testMSG_9_States, testPEEK_2_ShowsEveryState, testPEEK_3_ScheduledAmongTheOthers, testPEEK_7_MarksEveryRow,
	testPEEK_7_ShowChooses, testPEEK_8_HolderSeesItsSession, testPEEK_8_OverAllSessions, testPURGE_5_AvailableOnlyByDefault,
	testPURGE_5_Include, testPURGE_7_OfItsHolder, testPURGE_7_OneSession, testPURGE_8_WithoutATrace,
	testPURGE_9_DeleteBySequence, testPURGE_9_DeleteBySequenceInSessions, testPURGE_9_ReceiveBySequenceAllOrNone,
	testRECV_5_RecheckAfterWhatIsDueNext, testRECV_5_RecheckInASession, testRECV_5_RecheckOfAccepts,
	testRECV_5_SessionWokenByTime, testSCHED_9_ManyActivatedAtOnce, testSCHED_9_NotOfferedUntilActivation,
	testSCHED_9_PlaceAtActivation, testSCHED_9_ToItsHolder, testSESS_12_OnlyWithSomethingToReceive, testSESS_12_WokenByTime,
	testSESS_13_FromWhatMakesItReceivable, testSESS_14_PresentAndComingMessages, testSESS_22_EveryLookCarriesItOut,
	testSESS_29_DeadLetterRest, testSESS_33c_StateTTLWaitsForRest, testSESS_36_MessagesNotConsumedOrState, testSESS_38_LastActivity, testSESS_38_Rows,
	testSESS_39_PeekWithoutHolding, testTTL_18_ExpireDeferred, testTTL_19_EveryLookClearsAway, testTTL_23_BlocksItsSession,
	testTTL_23_TheWholeSession, testTTL_25_KeptExpiryIsCutToo, testTTL_25_NewLife,
}

func isOneOf(tests []ruleTest, test ruleTest) bool {
	return slices.ContainsFunc(tests, func(t ruleTest) bool { return ruleName(t) == ruleName(test) })
}

// throughTopic is a Store whose queues are each the only subscription of a topic of that name, to which everything is
// sent. A receiver must not be able to distinguish them (TOPIC-1).
type throughTopic struct{ semantics.Store }

const onlyName = "only"

func onlyPath(queue string) string { return semantics.SubscriptionPath(queue, onlyName) }

func onlySource(source semantics.Source) semantics.Source {
	source.Path = onlyPath(source.Path)
	return source
}

// asQueue returns what the topic and the subscription say of themselves as a queue would.
func (s throughTopic) asQueue(ctx context.Context, sub semantics.Entity) (semantics.Entity, error) {
	path, _, _ := semantics.SplitSubscription(sub.Name)
	topic, err := s.Store.GetEntity(ctx, semantics.TopicKind, path)
	if err != nil {
		return semantics.Entity{}, err
	}
	sub.Kind, sub.Name = semantics.QueueKind, topic.Name
	sub.Options, err = sub.Options.Merge(topic.Options, ofTopicAlone())
	if topic.AccessedAt.After(sub.AccessedAt) {
		sub.AccessedAt = topic.AccessedAt
	}
	return sub, err
}

// ofTopicAlone names the options that a subscription does not have but its topic has.
func ofTopicAlone() (names []string) {
	for _, name := range semantics.OptionNames(semantics.TopicKind) {
		if !isOption(semantics.SubscriptionKind, name) && isOption(semantics.QueueKind, name) {
			names = append(names, name)
		}
	}
	return names
}

func isOption(kind semantics.Kind, name string) bool {
	return slices.Contains(semantics.OptionNames(kind), name)
}

func (s throughTopic) CreateEntity(ctx context.Context, _ semantics.Kind, path string, options semantics.Options) (semantics.Entity, bool, error) {
	ofTopic, err := semantics.DefaultOptions().Merge(options, ofTopicAlone())
	if err != nil {
		return semantics.Entity{}, false, err
	}
	if _, _, err := s.Store.CreateEntity(ctx, semantics.TopicKind, path, ofTopic); err != nil {
		return semantics.Entity{}, false, err
	}
	ofSub, err := semantics.DefaultOptions().Merge(options, semantics.OptionNames(semantics.SubscriptionKind))
	if err != nil {
		return semantics.Entity{}, false, err
	}
	sub, created, err := s.Store.CreateSubscription(ctx, onlyPath(path), ofSub, []semantics.Rule{everything})
	if err != nil {
		return semantics.Entity{}, false, err
	}
	queue, err := s.asQueue(ctx, sub)
	return queue, created, err
}

func (s throughTopic) GetEntity(ctx context.Context, _ semantics.Kind, path string) (semantics.Entity, error) {
	sub, err := s.Store.GetEntity(ctx, semantics.SubscriptionKind, onlyPath(path))
	if err != nil {
		return semantics.Entity{}, err
	}
	return s.asQueue(ctx, sub)
}

func (s throughTopic) UpdateEntity(ctx context.Context, _ semantics.Kind, path string, options semantics.Options, names []string) (semantics.Entity, error) {
	var ofTopic, ofSub []string
	for _, name := range names {
		if isOption(semantics.SubscriptionKind, name) {
			ofSub = append(ofSub, name)
		} else {
			ofTopic = append(ofTopic, name)
		}
	}
	if len(ofTopic) > 0 {
		if _, err := s.Store.UpdateEntity(ctx, semantics.TopicKind, path, options, ofTopic); err != nil {
			return semantics.Entity{}, err
		}
	}
	sub, err := s.Store.UpdateEntity(ctx, semantics.SubscriptionKind, onlyPath(path), options, ofSub)
	if err != nil {
		return semantics.Entity{}, err
	}
	return s.asQueue(ctx, sub)
}

func (s throughTopic) DeleteEntity(ctx context.Context, _ semantics.Kind, path string) error {
	return s.Store.DeleteEntity(ctx, semantics.TopicKind, path)
}

func (s throughTopic) ListEntities(ctx context.Context, _ semantics.Kind, _, after string, limit int) ([]semantics.Entity, bool, error) {
	return s.Store.ListEntities(ctx, semantics.TopicKind, "", after, limit)
}

func (s throughTopic) Runtime(ctx context.Context, _ semantics.Kind, path string) (semantics.Runtime, error) {
	return s.Store.Runtime(ctx, semantics.SubscriptionKind, onlyPath(path))
}

func (s throughTopic) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	outcome := s.SendEach(ctx, path, [][]*semantics.Message{messages})[0]
	return outcome.Stored, outcome.Err
}

func (s throughTopic) SendEach(ctx context.Context, path string, calls [][]*semantics.Message) []semantics.SendOutcome {
	publications := make([][]semantics.Publication, len(calls))
	for i, messages := range calls {
		for _, m := range messages {
			publications[i] = append(publications[i], semantics.Publication{
				Message: m, Copies: []semantics.Copy{{Subscription: onlyName, Message: m}},
			})
		}
	}
	for {
		routes, err := s.Routes(ctx, path)
		if err != nil {
			outcomes := make([]semantics.SendOutcome, len(calls))
			for i := range outcomes {
				outcomes[i].Err = err
			}
			return outcomes
		}
		outcomes := s.Publish(ctx, path, routes.Version, publications)
		if !errors.Is(outcomes[0].Err, semantics.ErrRoutesChanged) {
			return outcomes
		}
	}
}

func (s throughTopic) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	return s.Store.Receive(ctx, onlySource(source), limit, register)
}

func (s throughTopic) CompleteAndReceive(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register) (semantics.NextBatch, error) {
	return s.Store.CompleteAndReceive(ctx, onlySource(source), tokens, limit, register)
}

func (s throughTopic) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	return s.Store.Watch(ctx, onlySource(source))
}

func (s throughTopic) NoteUse(ctx context.Context, uses []semantics.Use) error {
	uses = slices.Clone(uses)
	for i := range uses {
		uses[i].Path = onlyPath(uses[i].Path)
	}
	return s.Store.NoteUse(ctx, uses)
}

func (s throughTopic) PassOn(ctx context.Context, source semantics.Source) error {
	return s.Store.PassOn(ctx, onlySource(source))
}

func (s throughTopic) ReceiveByNumber(ctx context.Context, source semantics.Source, state semantics.State, numbers []int64) ([]*semantics.Received, error) {
	return s.Store.ReceiveByNumber(ctx, onlySource(source), state, numbers)
}

func (s throughTopic) Reactivate(ctx context.Context, source semantics.Source, numbers []int64) error {
	return s.Store.Reactivate(ctx, onlySource(source), numbers)
}

func (s throughTopic) Peek(ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show) ([]*semantics.Received, error) {
	return s.Store.Peek(ctx, onlySource(source), from, limit, show)
}

func (s throughTopic) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.Store.Complete(ctx, onlySource(source), tokens)
}

func (s throughTopic) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions) ([]semantics.Code, error) {
	return s.Store.Abandon(ctx, onlySource(source), tokens, options)
}

func (s throughTopic) Defer(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, changes map[string]semantics.Value) ([]semantics.Code, error) {
	return s.Store.Defer(ctx, onlySource(source), tokens, changes)
}

func (s throughTopic) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.Store.Release(ctx, onlySource(source), tokens)
}

func (s throughTopic) DeadLetter(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	texts semantics.DeadLetterTexts, changes map[string]semantics.Value,
) ([]semantics.Code, error) {
	return s.Store.DeadLetter(ctx, onlySource(source), tokens, texts, changes)
}

func (s throughTopic) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	return s.Store.RenewLocks(ctx, onlySource(source), tokens)
}

func (s throughTopic) Purge(ctx context.Context, source semantics.Source, purge semantics.Purge) (semantics.Purged, error) {
	return s.Store.Purge(ctx, onlySource(source), purge)
}

func (s throughTopic) DeleteByNumber(ctx context.Context, source semantics.Source, numbers []int64) ([]semantics.Code, error) {
	return s.Store.DeleteByNumber(ctx, onlySource(source), numbers)
}

func (s throughTopic) Resubmit(ctx context.Context, source semantics.Source, target string,
	letters []semantics.Resubmission, bypassDuplicates bool,
) ([]semantics.Resubmitted, error) {
	return s.Store.Resubmit(ctx, onlySource(source), onlyPath(target), letters, bypassDuplicates)
}

func (s throughTopic) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	return s.Store.AcceptSession(ctx, onlyPath(path), id)
}

func (s throughTopic) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	return s.Store.AcceptNextSession(ctx, onlyPath(path), register)
}

func (s throughTopic) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	return s.Store.RenewSessionLock(ctx, onlySource(source))
}

func (s throughTopic) CloseSession(ctx context.Context, source semantics.Source) error {
	return s.Store.CloseSession(ctx, onlySource(source))
}

func (s throughTopic) SessionState(ctx context.Context, source semantics.Source) (semantics.SessionState, error) {
	return s.Store.SessionState(ctx, onlySource(source))
}

func (s throughTopic) SetSessionState(ctx context.Context, source semantics.Source, state []byte, expected *int64) (int64, error) {
	return s.Store.SetSessionState(ctx, onlySource(source), state, expected)
}

func (s throughTopic) ListSessions(ctx context.Context, path, after string, limit int, filter semantics.SessionFilter) ([]semantics.SessionRow, string, error) {
	return s.Store.ListSessions(ctx, onlyPath(path), after, limit, filter)
}

func (s throughTopic) UnblockSession(ctx context.Context, path, id string) error {
	return s.Store.UnblockSession(ctx, onlyPath(path), id)
}

func (s throughTopic) DeadLetterRest(ctx context.Context, path, id string) error {
	return s.Store.DeadLetterRest(ctx, onlyPath(path), id)
}

// everything is the rule that selects all messages.
var everything = semantics.Rule{Name: semantics.DefaultRule, Filter: semantics.RuleFilter{All: true}}

// Turn is by Complete and Receive, with what they do here.
func (s throughTopic) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
