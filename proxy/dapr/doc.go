// Package dapr implements Dapr's pluggable pub/sub component over unix sockets. What apps publish through Dapr is sent
// to queues and topics of Sidebus; messages of these are delivered to Dapr's subscribers (DAPR-1 .. DAPR-6). The
// package only translates; the rules are in package semantics.
//
// Three properties of the Dapr runtime shape it:
//
//   - It never reopens a message stream that has ended, and reports that only in its log. So a stream survives
//     everything except the end of its client.
//   - Some versions pass the messages of a stream to the app one at a time, others all at once. So order never depends
//     on Dapr: the next message of a session is sent when the previous one was acknowledged.
//   - It reconnects to a restarted component with calls, but sends neither Init nor its streams again. So the metadata
//     of Init is kept in a file, and the runtime is told to restart.
package dapr
