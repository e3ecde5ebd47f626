package storetest

import (
	"context"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// runTopicsOverPartitions runs tests of topics on topics with several partitions.
func runTopicsOverPartitions(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	counts := []int64{2, 3, 16}
	for i, test := range alsoOverPartitions {
		n := counts[i%len(counts)]
		t.Run("PART_8_AsOfOnePartition/"+ruleName(test), func(t *testing.T) {
			t.Parallel()
			try(t, test, open(t).topicsOverPartitions(n))
		})
	}
}

// alsoOverPartitions are the tests of topics that hold for several partitions as they are: those that go neither by
// numbers or the order of all messages, which only a partition has, nor by the size of a topic, of which each partition
// has a share, nor by what is not built for partitions (PART-1).
var alsoOverPartitions = []ruleTest{
	testACT_2_OnlyItsOwnCopyIsChanged, testACT_9_HeadersTooLarge, testBATCH_2_CountLimitsOfATopic,
	testCNT_1_Subscription, testCNT_1_Topic, testCORR_6_CorrelationWithAction, testDLQ_11_LetterIsTheMessageAsSent,
	testDLQ_2_DeadLettersOfEachSubscription, testENT_11_BoundsOfTopicsAndSubscriptions, testENT_17_ListSubscriptions,
	testENT_17_ListTopics, testENT_1_DeadLetterQueueOfASubscription, testENT_2_QueuesAndTopicsShareTheirNames,
	testENT_2_SubscriptionNamesPerTopic, testENT_3_OddNamesAreKeptApart, testENT_3_RuleNamesAreChecked,
	testENT_3_SubscriptionNamesAreChecked, testENT_4_RuleNamesWithoutCase, testENT_5_SubscriptionsIsReserved,
	testENT_6_EnsureOfASubscriptionUnderRace, testENT_6_EnsureOfTopicsAndSubscriptions,
	testENT_6_SubscriptionNeedsItsTopic, testENT_7_UpdateOfASubscription, testENT_7_UpdateOfATopic,
	testENT_8_CopiesElsewhereKeepTheirBodies, testENT_8_KindIsPartOfTheName, testENT_8_MissingTopicAndSubscription,
	testENT_8_SubscriptionEndsWaits, testENT_8_TopicEndsWaits, testENT_8_UnmatchedGoesWithTheTopic,
	testMSG_8_CopiesHaveTheTimeOfTheSend,
	testQUOTA_7_LimitsOfAMessageToATopic, testRECV_10_CompetingConsumersOfASubscription,
	testRECV_13_StreamOfASubscription, testRECV_5_CopyWakesOnlyWhoGetsIt, testRECV_5_CopyWakesReceivers,
	testRECV_5_LetterFromTheStartWakes, testRULE_1_DefaultRule, testRULE_1_KeepsWhatItWasGiven,
	testRULE_1_OwnFirstRules, testRULE_1_StoreKeepsItsOwnCopy, testRULE_2_AddedRuleLeavesTheDefault,
	testRULE_2_DefaultRuleIsDeletable, testRULE_2_WithoutRuleNothing, testRULE_3_MissingRule,
	testRULE_3_MissingSubscription, testRULE_3_NamesPerSubscription, testRULE_3_OneOfManyCreatorsWins,
	testRULE_3_SameNameTwice, testRULE_4_CorrelationFiltersOfATopic, testRULE_4_SQLFiltersOfATopic,
	testRULE_4_SubscriptionsOfATopic, testRULE_7_BadRuleIsNeverStored, testRULE_8_FailingAction,
	testRULE_8_FailureIsADeadLetter, testRULE_8_OneDeadLetterForManyFailures, testRULE_8_OtherRulesGoOn,
	testRULE_8_OtherSubscriptionsGoOn, testRULE_8_SwitchedOff, testRULE_8_SwitchedOver, testRULE_9_ListInPages,
	testRULE_10_Replace, testRULE_10_RefusedReplacementChangesNothing, testRULE_10_LimitsCountTheRuleOnce,
	testSCHED_12_StatusDoesNotStopActivationOfATopic, testSCHED_2_HiddenFromSubscriptions,
	testSCHED_3_ActivatedAsIfSentThen, testSCHED_4_PastAndNowAreAtOnceInATopic, testSCHED_5_CancelAfterActivation,
	testSCHED_5_CancelBeforeRemovesForAll, testSCHED_5_CancelOfATopicIsAllOrNone, testSCHED_6_ManyAtOnceInATopic,
	testSCHED_7_FiltersRunAtActivation, testSCHED_7_PeekShowsThemOnTheTopicAlone,
	testSCHED_7_SubscriptionsOfTheTimeOfActivation, testSCHED_7_WakesReceivers, testSCHED_8_CancelByMessageIDInATopic,
	testSQL_12_WarningsAreGiven, testSTAT_1_DisabledTopicIsLikeSendDisabled, testSTAT_1_StatusesOfSubscriptions,
	testSTAT_1_StatusesOfTopics, testSTAT_3_ManagementOfDisabledOnes, testSTAT_4_TopicAndSubscription,
	testSTAT_5_SubscriptionEndsItsWaits, testSTAT_5_TopicEndsNoWaits, testTOPIC_1_EachSubscriptionHasItsCopy,
	testTOPIC_2_ScheduledMakeTheirCopiesLater, testTOPIC_2_SoManyCopiesAtOnce, testTOPIC_3_DeadLetterIsAMatch,
	testTOPIC_3_UnmatchedAtActivationVanishes, testTOPIC_3_WithoutMatchItVanishes,
	testTOPIC_3_UnmatchedAndScheduled, testTOPIC_3_UnmatchedByRulesOfTheInstant, testTOPIC_3_UnmatchedIsHidden,
	testTOPIC_3_UnmatchedIsNoneOfTheLimit, testTOPIC_3_UnmatchedIsSetAndCleared,
	testTOPIC_3_UnmatchedThatHasGoneTooFar, testTOPIC_3_UnmatchedThatIsRefused, testTOPIC_3_UnmatchedWinsOverFail,
	testTOPIC_4_AnotherSidecarsChangesAreSeenAtOnce, testTOPIC_4_EveryChangeGivesAnotherVersion,
	testTOPIC_4_ReplacedRuleLosesNothing, testTOPIC_4_RulesAmongConcurrentSends, testTOPIC_4_StoredCopiesStay,
	testTOPIC_4_SubscriptionsAmongConcurrentSends, testTOPIC_4_TopicMadeAnewBySomebodyElse,
	testTOPIC_5_CopiesPerSubscription, testTOPIC_5_ThreePlainAndTwoActionsAreThreeCopies,
	testTOPIC_6_RuleNameOnCopiesOfActions, testTOPIC_7_CopiesOfActionsCountAsTheyAre,
	testTOPIC_7_DeadLettersDoNotOverflow, testTOPIC_7_EveryCopyCounts, testTOPIC_8_SubscriptionCannotBeSentTo,
	testTTL_17_LifetimeOfCopiesBeginsAtActivation, testTTL_22_DefaultsOfTheTimeOfTheSend,
	testTTL_22_TopicsDefaultOfTheTimeOfScheduling, testTTL_6_EachSubscriptionByItself, testTTL_6_NeverIsNoBound,
	testTTL_6_ShortestOfThreeWins,
}

// topicsOverPartitions is the same harness with topics that have several partitions.
func (h Harness) topicsOverPartitions(n int64) Harness {
	spread := func(store semantics.Store) semantics.Store {
		return spreadTopics{partitioned.New(withoutPartitions(store)), n}
	}
	h.Store = spread(h.Store)
	if peer := h.Peer; peer != nil {
		h.Peer = func() semantics.Store { return spread(peer()) }
	}
	if sweep := h.Sweep; sweep != nil {
		h.Sweep = func(ctx context.Context, store semantics.Store, upkeep semantics.Upkeep) error {
			return sweep(ctx, store.(spreadTopics).Store.(*partitioned.Store).Store, upkeep)
		}
	}
	if limited := h.WithTopicLimits; limited != nil {
		h.WithTopicLimits = func(subscriptions, sqlFilters, correlationFilters int) semantics.Store {
			return spread(limited(subscriptions, sqlFilters, correlationFilters))
		}
	}
	if reference := h.Reference; reference != nil {
		h.Reference = func(t *testing.T) Harness {
			t.Helper()
			return reference(t).topicsOverPartitions(n)
		}
	}
	return h
}

// spreadTopics is a Store that creates topics with several partitions.
type spreadTopics struct {
	semantics.Store

	n int64
}

func (s spreadTopics) CreateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options,
) (semantics.Entity, bool, error) {
	if kind == semantics.TopicKind {
		options.Partitions = s.n
	}
	return s.Store.CreateEntity(ctx, kind, path, options)
}
