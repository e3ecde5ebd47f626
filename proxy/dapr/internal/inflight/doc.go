// Package inflight has what the goroutines of one message stream to the Dapr runtime share: the messages that the
// runtime has and has not acknowledged, how many more it may get, and those acknowledged ones that wait to be completed
// together. It decides; package dapr talks to the runtime and settles.
//
// One mutex guards all of it, because an acknowledgment changes the queue, the credits and the timer in one step. An
// exported method of Queue locks the mutex, and unlocks it when it returns. An unexported method runs while the mutex
// is locked, and so does what a timer calls (see after). So code outside this package cannot reach the state
// without the mutex, and a test checks the rule for the code inside. No method blocks.
package inflight
