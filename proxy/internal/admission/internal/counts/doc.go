// Package counts knows what each client connection does: how many calls are in flight on it, whether their requests
// have arrived, and which of them wait or are streams. From that it decides which connections may stay open, which are
// closed for others, and which waits end early (QUOTA-5, RECV-5). Package admission has the connections themselves,
// closes them, and answers the calls.
//
// One mutex guards all of it, because a step of one connection may change others: a new one closes an idle one, and a
// new wait ends older ones. An exported method locks the mutex, and unlocks it when it returns. An unexported method
// runs while the mutex is locked. So code outside this package cannot reach the state without the mutex, and a test
// checks the rule for the code inside. No method blocks or closes a connection: it returns the function that does, and
// the caller calls that.
package counts
