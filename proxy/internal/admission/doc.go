// Package door is where clients come in, over HTTP and gRPC alike. It bounds their connections (QUOTA-5) and keeps
// places for calls that do not wait, bounds the bytes of requests and answers that are under way, and ends what never
// arrives or is never read.
//
// The bounds are shared by both wires, and whoever does least with a connection loses it first:
//
//	idle     no call is under way                   closed when places are short, the longest idle first
//	fresh    no call came yet                       as idle, but not in its first second
//	coming   no request of its calls came whole     as fresh
//	waiting  all its calls wait for messages        its waits end early, the oldest first (RECV-5)
//	busy     everything else, streams included      never
package admission
