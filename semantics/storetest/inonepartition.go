package storetest

// Why the tests of inOnePartition do not hold over several.
const (
	ofOrder     = "which session has been ready longest is decided in one partition (PART-4)"
	ofBounds    = "each partition has a share of the bound (PART-5)"
	ofNumbers   = "messages of several sessions or keys have numbers in no common order (PART-3)"
	ofBatches   = "a batch has one key (BATCH-4); asOne divides what has several"
	ofKeys      = "the key is part of what is remembered, as on any partitioned queue (DUP-2)"
	ofLooks     = "a call looks at one partition, and notes there that the queue is in use (PART-5)"
	ofTransfers = "a resubmission elsewhere is a transfer, whose messages asOne does not number"
	ofTime      = "it takes 10 s, and tests what the Broker does whatever the Store is"
)

// inOnePartition are the tests of rules that hold in one partition, or are another one with several, with the reason.
var inOnePartition = map[string]string{
	"CNT_6_WaitingSidecars":                    "a sidecar waits on each partition, and a message wakes it on one",
	"CON_1_UnclaimedDelaysNobody":              ofOrder,
	"RECV_10_PassOnOfSessions":                 ofOrder,
	"RECV_10_WatchOfSessions":                  ofOrder,
	"SCHED_9_ManyActivatedAtOnce":              ofOrder,
	"SESS_11_OddIDs":                           ofOrder,
	"SESS_12_FoundAtOnceDoesNotWait":           ofOrder,
	"SESS_12_OnlyWithSomethingToReceive":       ofOrder,
	"SESS_13_FromWhatMakesItReceivable":        ofOrder,
	"SESS_13_AThousandSessions":                ofOrder,
	"SESS_13_EqualInstantsByID":                ofOrder,
	"SESS_13_FromTheEndOfADelay":               ofOrder,
	"SESS_13_FromTheEndOfALock":                ofOrder,
	"SESS_13_FromTheFirstMessageWhileUnlocked": ofOrder,
	"SESS_13_FromTheLookThatEndsALock":         ofOrder,
	"SESS_13_FromTheUnlock":                    ofOrder,
	"SESS_13_LongestReadyFirst":                ofOrder,
	"SESS_13_ManyLocksEndAtOnce":               ofOrder,
	"SESS_13_NotAnyLongerWithoutMessages":      ofOrder,
	"SESS_13_RoundRobin":                       ofOrder,
	"SESS_13_StaysInItsPlace":                  ofOrder,
	"SESS_24_IdleHolderBlocksOnlyItsOwn":       ofOrder,
	"SESS_29_UnblockGoesOn":                    ofOrder,
	"SETTLE_11_ManyDelaysEndAtOnce":            ofOrder,
	"DUP_11_HistoryIsBounded":                  ofBounds,
	"IDLE_7_WhatDoesNotCount":                  ofBounds,
	"MSG_19_RefusedAndDuplicatesGetNone":       ofBounds,
	"QUOTA_12_FullQueueWithSessions":           ofBounds,
	"SESS_33c_CountsAgainstTheSize":            ofBounds,
	"SESS_33c_ShrinkingIsNeverRefused":         ofBounds,
	"SESS_33c_StateTTLFreesEverything":         ofBounds,
	"DEFER_7_ReactivateInASession":             ofNumbers,
	"DUP_5_NothingClearsTheHistory":            ofNumbers,
	"SESS_22_OneOrderWithExpiries":             ofNumbers,
	"SESS_9_PlainDataWithoutSessions":          ofNumbers,
	"TTL_23_TheTriggerFirst":                   ofNumbers,
	"BATCH_4_OnePartitionPerCall":              ofBatches,
	"BATCH_4_SessionsOfAPartitionedQueue":      ofBatches,
	"DUP_10_RefusedSendLeavesNoHistory":        ofBatches,
	"SESS_6_SendNeedsAnID":                     ofBatches,
	"DUP_2_KeyIsTheMessageID":                  ofKeys,
	"DUP_2_SessionIsThePartition":              ofKeys,
	"CNT_5_SessionVerbsAreActivity":            ofLooks,
	"DUP_1_RememberedIsDropped":                ofLooks,
	"SESS_22_EveryLookCarriesItOut":            ofLooks,
	"DLQ_23_IntoAQueueWithoutSessions":         ofTransfers,
	"DLQ_23_NeedsASessionID":                   ofTransfers,
	"RECV_3_ReceiveAndDeleteInASession":        ofTime,
}
