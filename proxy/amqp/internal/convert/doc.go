// Package convert is the one table between the sections of an AMQP message and a message of Sidebus, in both
// directions:
//
//	AMQP                                              Sidebus
//	header ttl; absolute-expiry-time - creation-time  TimeToLive
//	header delivery-count                             DeliveryCount, less the delivery itself
//	properties message-id, correlation-id             MessageID, CorrelationID: strings; uuid and ulong become text
//	properties group-id, reply-to-group-id            SessionID, ReplyToSessionID
//	properties to, subject, reply-to, content-type    To, Subject, ReplyTo, ContentType
//	application-properties                            Properties, see Value and FromValue
//	data, one or several                              Body; several become one
//	x-opt-partition-key                               PartitionKey
//	x-opt-scheduled-enqueue-time                      ScheduledAt
//	x-opt-sequence-number and the like                what the broker sets; ignored in what clients send (MSG-4)
//
// What has no counterpart is not kept: the other fields of header and properties, other annotations, the footer. Bodies
// of amqp-value and amqp-sequence are refused, because they would reach receivers as something else.
package convert
