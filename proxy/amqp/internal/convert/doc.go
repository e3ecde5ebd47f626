// Package convert is the one table between the sections of an AMQP message and a message of Sidebus, in both
// directions:
//
//	AMQP                                              Sidebus
//	header ttl; absolute-expiry-time - creation-time  TimeToLive
//	header delivery-count                             DeliveryCount, less the delivery itself
//	properties message-id, correlation-id             MessageID, CorrelationID: strings; others become text
//	properties group-id, reply-to-group-id            SessionID, ReplyToSessionID
//	properties to, subject, reply-to, content-type    To, Subject, ReplyTo, ContentType
//	application-properties                            Properties, see Value and FromValue
//	one data section; amqp-value of string or binary  Body, as bytes or text
//	several data sections, other bodies               Body: the sections, encoded
//	x-opt-partition-key                               PartitionKey
//	x-opt-scheduled-enqueue-time                      ScheduledAt
//	x-opt-sequence-number and the like                what the broker sets; ignored in what clients send (MSG-4)
//	all else, and types that became others            AMQP, see rest: for clients of AMQP as it came
package convert
