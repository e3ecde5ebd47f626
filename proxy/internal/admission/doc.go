// Package admission decides which connections and requests are let in, over HTTP and gRPC together. It limits
// connections (QUOTA-5), reserves some of them for calls that do not wait, limits the memory of requests and responses
// in flight, and closes connections on which a request does not arrive or a response is not read.
//
// Both protocols share the limits. When connections run short, the least active ones are closed first:
//
//	idle     no call is in flight                        closed first, the longest idle first
//	unused   has not carried a call yet                  next, after one second of grace
//	reading  no request of its calls has fully arrived   next, after the same grace
//	waiting  all its calls wait for messages             its waits end early, the longest first (RECV-5)
//	active   anything else, streams included             never closed
package admission
