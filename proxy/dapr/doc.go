// Package dapr serves Dapr's pluggable pub/sub component over unix sockets: what apps publish through Dapr goes to
// queues and topics of Sidebus, and what these hold goes to the subscribers that Dapr knows (DAPR-1 .. DAPR-6). It
// translates; the rules are those of package semantics.
//
// Three things about Dapr's runtime shape it. It never opens a stream of messages again that has ended, and says so
// only in its log, so a stream stands through everything but the end of its client. Some versions hand messages of a
// stream to the app one after the other, others all at once, so order never rests on Dapr: the next message of a
// session leaves when the last one was answered. And it comes back to a component that was restarted with calls, but
// neither with Init nor with its streams, so what Init said is kept in a file, and Dapr's runtime is told to begin
// anew.
package dapr
