// Package account has what the goroutines of one subscription share: its credits, its unsettled messages, the messages
// fetched ahead and the sessions that it holds. It decides; package stream does what takes time: it calls the Broker,
// runs goroutines and talks to the client.
//
// One mutex guards all of it, because a settled message changes the credits, the prefetch and its session in one step.
// An exported method locks the mutex, and unlocks it when it returns. An unexported method runs while the mutex is
// locked. So code outside this package cannot reach the state without the mutex, and a test checks the rule for the
// code inside. No method blocks.
package account
