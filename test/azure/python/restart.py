"""Uses the official SDK of Azure Service Bus for Python over a restart of the sidecar, whose connection string is the
argument. It says "ready" when the sidecar is to be killed, and goes on when it reads a line. It needs the queue "held".
"""

import sys

from azure.servicebus import ServiceBusClient, ServiceBusMessage

with ServiceBusClient.from_connection_string(sys.argv[1]) as client:
    with client.get_queue_sender("held") as sender, client.get_queue_receiver("held") as receiver:
        sender.send_messages(ServiceBusMessage("0"))
        (held,) = receiver.receive_messages(max_wait_time=30)
        print("ready", flush=True)
        sys.stdin.readline()
        receiver.complete_message(held)
        sender.send_messages(ServiceBusMessage("1"))
        (m,) = receiver.receive_messages(max_wait_time=30)
        assert (str(m), m.sequence_number) == ("1", 2), m
        receiver.complete_message(m)
        assert receiver.peek_messages(5, sequence_number=1) == []
