"""Uses Qpid Proton, a generic client of AMQP 1.0, for what the SDKs of Azure Service Bus do not do: the smallest frames,
small windows, credit that is given and taken back, all outcomes, transactions, and links that are refused. The arguments are
host:port and the checks to run, without them all. The queues "frames", "credit", "outcomes" and "transactions" are empty.
"""

import sys
import traceback

from proton import Condition, Delivery, Message, symbol
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

ADDRESS = sys.argv[1]


class Check(MessagingHandler):
    """A handler that must call done, or fails after a minute."""

    options = {"allowed_mechs": "ANONYMOUS", "reconnect": False}

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.failure = "did not end"
        self.container = None

    def on_start(self, event):
        self.container = event.container
        self.timeout = event.container.schedule(60, self)
        self.connection = event.container.connect(ADDRESS, **self.options)
        self.begin(event)

    def on_timer_task(self, event):
        self.container.stop()

    def on_transport_error(self, event):
        self.failure = f"transport: {event.transport.condition}"
        self.container.stop()

    def done(self):
        self.failure = None
        self.timeout.cancel()
        self.connection.close()

    def on_link_error(self, event):
        self.failure = f"link: {event.link.remote_condition}"
        self.container.stop()


class Frames(Check):
    """Frames of 512 bytes, so that a message of 20 kB takes many in both directions."""

    options = {**Check.options, "max_frame_size": 512}
    content = "0123456789" * 2000

    def __init__(self):
        super().__init__(prefetch=1)

    def begin(self, event):
        event.container.create_sender(self.connection, "frames")
        event.container.create_receiver(self.connection, "frames")

    def on_sendable(self, event):
        if not getattr(self, "sent", False):
            self.sent = True
            event.sender.send(Message(body=self.content, id=7, properties={"a": symbol("b"), "n": None}))

    def on_message(self, event):
        m = event.message
        assert m.body == self.content and m.id == 7, (len(m.body), m.id)
        assert type(m.properties["a"]) is symbol, m.properties
        self.accept(event.delivery)
        self.done()


class Credit(Check):
    """Credit of one at a time, taken back by a drain, and given for more than there is."""

    def __init__(self):
        super().__init__(prefetch=0, auto_accept=False)
        self.got = []
        self.drained = 0

    def begin(self, event):
        self.sender = event.container.create_sender(self.connection, "credit")

    def on_sendable(self, event):
        if not getattr(self, "sent", False):
            self.sent = True
            for i in range(3):
                self.sender.send(Message(body=i))

    def on_accepted(self, event):
        if event.link == self.sender and not hasattr(self, "receiver"):
            self.receiver = self.container.create_receiver(self.connection, "credit")
            self.receiver.flow(1)

    def on_message(self, event):
        self.got.append(event.message.body)
        self.accept(event.delivery)
        if len(self.got) < 3:
            self.receiver.flow(1)
        else:
            self.receiver.drain(10)  # there is nothing more: all of it must come back

    def on_link_flow(self, event):
        if event.link.is_receiver and len(self.got) == 3 and event.link.credit == 0 and not self.drained:
            self.drained = event.link.drained()
            assert self.got == [0, 1, 2], self.got
            self.done()


class Outcomes(Check):
    """Released, modified, rejected and accepted, each on the next delivery of one message."""

    def __init__(self):
        super().__init__(prefetch=0, auto_accept=False)
        self.counts = []

    def begin(self, event):
        event.container.create_sender(self.connection, "outcomes")
        event.container.create_receiver(self.connection, "outcomes").flow(4)

    def on_sendable(self, event):
        if not getattr(self, "sent", False):
            self.sent = True
            event.sender.send(Message(body="x", durable=True, priority=7))

    def on_message(self, event):
        self.counts.append(event.message.delivery_count)
        assert event.message.durable and event.message.priority == 7
        if event.receiver.source.address.endswith("Queue"):
            assert event.message.properties["DeadLetterReason"] == "mine:why", event.message.properties
            assert self.counts == [0, 0, 1, 1], self.counts
            self.accept(event.delivery)
            return self.done()
        if len(self.counts) == 1:
            self.release(event.delivery, delivered=False)
        elif len(self.counts) == 2:
            self.release(event.delivery, delivered=True)  # modified, delivery-failed
        else:
            event.delivery.local.condition = Condition("mine:why", "because")
            event.delivery.update(Delivery.REJECTED)
            event.delivery.settle()
            event.receiver.close()
            event.container.create_receiver(self.connection, "outcomes/$DeadLetterQueue").flow(1)


class Transactions(Check, TransactionHandler):
    """A transaction that is aborted, and one that is committed with two messages."""

    def __init__(self):
        Check.__init__(self, prefetch=10)
        self.aborted = self.committed = False

    def begin(self, event):
        self.sender = event.container.create_sender(self.connection, "transactions")
        event.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event):
        for i in range(2):
            event.transaction.send(self.sender, Message(body="aborted" if not self.aborted else f"committed {i}"))
        (event.transaction.commit if self.aborted else event.transaction.abort)()

    def on_transaction_aborted(self, event):
        self.aborted = True
        event.container.declare_transaction(self.connection, handler=self)

    def on_transaction_committed(self, event):
        self.got = []
        event.container.create_receiver(self.connection, "transactions")

    def on_message(self, event):
        self.got.append(event.message.body)
        if len(self.got) == 2:
            assert self.got == ["committed 0", "committed 1"], self.got
            self.done()

    def on_transaction_declare_failed(self, event):
        self.failure = "not declared"
        self.container.stop()

    on_transaction_commit_failed = on_transaction_declare_failed


class Refused(Check):
    """A link to what does not exist is refused, and the connection goes on."""

    def begin(self, event):
        event.container.create_receiver(self.connection, "missing")

    def on_link_error(self, event):
        assert event.link.remote_condition.name == "amqp:not-found", event.link.remote_condition
        if not hasattr(self, "again"):
            self.again = True
            event.container.create_receiver(self.connection, "missing")
        else:
            self.done()


CHECKS = {"frames": Frames, "credit": Credit, "outcomes": Outcomes, "transactions": Transactions, "refused": Refused}


def main():
    names = sys.argv[2:] or list(CHECKS)
    failed = False
    for name in names:
        check = CHECKS[name]()
        try:
            Container(check).run()
        except Exception:
            check.failure = traceback.format_exc()
        print(f"{name}: {check.failure or 'passed'}")
        failed = failed or check.failure is not None
    sys.exit(failed)


main()
